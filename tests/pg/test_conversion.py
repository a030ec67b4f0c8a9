"""A plain table becomes a partitioned one with all it has; what cannot come along is refused."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from faena import Faena
from faena.errors import ConfigError, StoreRejected
from faena.pg import Conversion, Postgres
from faena.pg.conversion.copying import Copying
from faena.pg.partition.catalog import find_table
from faena.pg.partition.declaration import declaration
from faena.pg.partition.name import Name

FULL = """
CREATE ROLE IF_ROLE;
CREATE TABLE organizations (id text PRIMARY KEY);
INSERT INTO organizations VALUES ('acme'), ('beta');
CREATE TABLE audit (what text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN INSERT INTO audit VALUES (TG_OP); RETURN NULL; END$$;
CREATE TABLE visits (
  id bigint GENERATED ALWAYS AS IDENTITY,
  number serial,
  organization_id text NOT NULL REFERENCES organizations,
  at timestamptz(3) NOT NULL DEFAULT now(),
  minutes int DEFAULT 5 CONSTRAINT minutes_are_positive CHECK (minutes > 0),
  hours numeric GENERATED ALWAYS AS (minutes / 60.0) STORED,
  "Note" text COLLATE "C",
  gone int,
  CONSTRAINT visits_key PRIMARY KEY (id)
);
ALTER TABLE visits DROP COLUMN gone;
CREATE INDEX visits_by_hour ON visits USING btree (lower("Note"), at DESC) WHERE minutes > 10;
CREATE UNIQUE INDEX visits_once ON visits (number, at);
ALTER TABLE visits ADD CONSTRAINT visits_slot UNIQUE (organization_id, at, id);
CREATE INDEX visits_at ON visits (at);
COMMENT ON TABLE visits IS 'who came';
COMMENT ON COLUMN visits.minutes IS 'how long';
COMMENT ON INDEX visits_by_hour IS 'for reports';
COMMENT ON CONSTRAINT visits_key ON visits IS 'the key';
GRANT SELECT, INSERT ON visits TO IF_ROLE WITH GRANT OPTION;
GRANT UPDATE (minutes) ON visits TO PUBLIC;
ALTER TABLE visits ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON visits AS RESTRICTIVE FOR SELECT TO IF_ROLE USING (organization_id = 'acme');
CREATE POLICY all_of ON visits WITH CHECK (minutes < 1000);
CREATE TRIGGER noted AFTER INSERT ON visits FOR EACH ROW WHEN (NEW.minutes > 1)
  EXECUTE FUNCTION note();
CREATE TRIGGER silent AFTER DELETE ON visits FOR EACH ROW EXECUTE FUNCTION note();
ALTER TABLE visits DISABLE TRIGGER silent;
INSERT INTO visits (organization_id, at, minutes, "Note")
  SELECT 'acme', now() - n * interval '3 hours', n, 'n' || n FROM generate_series(1, 200) n;
TRUNCATE audit;
"""

DESCRIBED = {
    "columns": "SELECT attname, format_type(atttypid, atttypmod), attnotnull, attidentity::text,"
    " attgenerated::text, attcollation::regcollation::text,"
    " coalesce(pg_get_expr(adbin, adrelid), ''), col_description(attrelid, attnum)"
    " FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
    " WHERE attrelid = 'visits'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
    "constraints": "SELECT conname, pg_get_constraintdef(oid), obj_description(oid)"
    " FROM pg_constraint WHERE conrelid = 'visits'::regclass AND contype <> 'p'"
    " AND conparentid = 0 ORDER BY conname",
    "indexes": "SELECT indexrelid::regclass::text, replace(pg_get_indexdef(indexrelid), 'ONLY ',"
    " ''), obj_description(indexrelid) FROM pg_index WHERE indrelid = 'visits'::regclass"
    " AND NOT indisprimary ORDER BY 1",
    "grants": "SELECT coalesce(grantee::regrole::text, ''), privilege_type, is_grantable"
    " FROM pg_class, aclexplode(relacl) WHERE oid = 'visits'::regclass ORDER BY 1, 2",
    "column grants": "SELECT attname, attacl::text FROM pg_attribute"
    " WHERE attrelid = 'visits'::regclass AND attacl IS NOT NULL",
    "policies": "SELECT polname, polpermissive, polcmd::text, polroles::regrole[]::text,"
    " pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid) FROM pg_policy"
    " WHERE polrelid = 'visits'::regclass ORDER BY 1",
    "security": "SELECT relrowsecurity, obj_description(oid, 'pg_class'), relowner FROM pg_class"
    " WHERE oid = 'visits'::regclass",
    "triggers": "SELECT tgname, tgenabled::text, pg_get_triggerdef(oid) FROM pg_trigger"
    " WHERE tgrelid = 'visits'::regclass AND NOT tgisinternal AND tgname NOT LIKE 'faena%'"
    " ORDER BY 1",
    "sequence": "SELECT pg_get_serial_sequence('visits', 'number')",
    "rows": "SELECT * FROM visits ORDER BY id",
}


async def run(pg: Postgres, text: str) -> list[Any]:
    """The rows of one or more statements."""
    async with pg.transaction() as connection:
        await connection.execute("SET LOCAL TimeZone TO 'UTC'")
        found = await connection.execute(text.encode())
        return await found.fetchall() if found.description else []


async def described(pg: Postgres) -> dict[str, list[Any]]:
    return {name: await run(pg, query) for name, query in DESCRIBED.items()}


@pytest.fixture
async def visits(pg: Postgres) -> Conversion:
    role = f'"role {(await run(pg, "SELECT current_database()"))[0][0]}"'
    text = FULL.replace("IF_ROLE", role)
    await run(pg, text)
    return pg.convert("visits", by="at", every="week", ahead=2, tenant="organization_id")


@pytest.fixture(autouse=True)
async def _no_role_left(pg: Postgres) -> Any:
    yield
    name = (await run(pg, "SELECT current_database()"))[0][0]
    found = await run(pg, f"SELECT 1 FROM pg_roles WHERE rolname = 'role {name}'")
    if found:
        await run(pg, f'DROP OWNED BY "role {name}"; DROP ROLE "role {name}"')


async def test_everything_that_a_table_has_survives_and_comes_back(
    pg: Postgres, visits: Conversion
) -> None:
    before = await described(pg)
    steps: list[str] = []
    view = await visits.run(lambda progress: steps.append(progress.step))
    assert (view.step, view.copied, view.next) == ("copied", 200, "swap")
    assert [*dict.fromkeys(steps)] == ["twin", "mirror", "rows", "verified"]
    assert await described(pg) == before
    assert (await visits.swap()).step == "swapped"
    after = await described(pg)
    added = after["indexes"].pop(
        [row[0] for row in after["indexes"]].index("visits_organization_id_at_idx")
    )
    assert "(organization_id, at)" in added[1]
    for name, rows in before.items():
        assert after[name] == rows, name
    key = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'visits_key'"
    assert await run(pg, key) == [("PRIMARY KEY (id, at)",)]
    assert await run(pg, "SELECT relkind::text FROM pg_class WHERE relname = 'visits'") == [("p",)]
    assert (await visits.revert()).step == "copied"
    assert await described(pg) == before


async def test_values_of_sequences_go_on_and_triggers_fire_once(
    pg: Postgres, visits: Conversion
) -> None:
    await visits.run()
    new = "INSERT INTO visits (organization_id) VALUES ('beta') RETURNING id, number"
    assert await run(pg, new) == [(201, 201)]
    await visits.swap()
    assert await run(pg, new) == [(202, 202)]
    assert await run(pg, "SELECT what FROM audit") == [("INSERT",), ("INSERT",)]
    await visits.revert()
    assert await run(pg, new) == [(203, 203)]
    await visits.swap()
    await visits.finish(drop=True)
    assert await run(pg, new) == [(204, 204)]
    assert await run(pg, "SELECT count(*) FROM audit") == [(4,)]
    assert await run(pg, "SELECT to_regclass('visits_before_partitions')") == [(None,)]
    left = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'faena%'"
    assert await run(pg, left) == [(0,)]


async def test_all_kinds_of_writes_reach_both_tables_before_and_after_the_swap(
    pg: Postgres, visits: Conversion
) -> None:
    writes = """
        INSERT INTO visits (organization_id, minutes) SELECT 'beta', n FROM generate_series(1, 9) n;
        UPDATE visits SET minutes = minutes + 1 WHERE id % 3 = 0;
        UPDATE visits SET at = now() - id % 20 * interval '1 day' WHERE id % 7 = 0;
        DELETE FROM visits WHERE id % 11 = 0;
    """
    await visits.run()
    pair = "SELECT * FROM visits EXCEPT ALL SELECT * FROM"
    await run(pg, writes)
    assert await run(pg, f"{pair} visits_partitioned") == []
    await visits.swap()
    await run(pg, writes)
    assert await run(pg, f"{pair} visits_before_partitions") == []
    counts = "SELECT (SELECT count(*) FROM visits), (SELECT count(*) FROM visits_before_partitions)"
    ((first, second),) = await run(pg, counts)
    assert first == second > 100
    await run(pg, "TRUNCATE visits")
    assert await run(pg, counts) == [(0, 0)]
    await visits.revert()
    await run(pg, writes)
    assert await run(pg, f"{pair} visits_partitioned") == []
    await run(pg, "TRUNCATE visits")
    assert await run(pg, "SELECT count(*) FROM visits_partitioned") == [(0,)]


async def test_a_trigger_that_writes_the_same_rows_again_leaves_both_equal(pg: Postgres) -> None:
    await run(
        pg,
        """
        CREATE TABLE visits (id int PRIMARY KEY, at date NOT NULL DEFAULT now(), latest bool);
        CREATE FUNCTION latest() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
          UPDATE visits SET latest = (id = NEW.id) WHERE latest IS DISTINCT FROM (id = NEW.id);
          RETURN NULL; END$$;
        CREATE TRIGGER a AFTER INSERT ON visits FOR EACH ROW EXECUTE FUNCTION latest();
        CREATE TRIGGER z AFTER INSERT ON visits FOR EACH ROW EXECUTE FUNCTION latest();
        """,
    )
    visits = pg.convert("visits", by="at", every="month")
    await visits.run()
    await run(pg, "INSERT INTO visits (id) SELECT generate_series(1, 20)")
    await visits.swap()
    await run(pg, "INSERT INTO visits (id) SELECT generate_series(21, 40)")
    pair = "SELECT * FROM visits EXCEPT ALL SELECT * FROM visits_before_partitions"
    assert await run(pg, pair) == []
    assert await run(pg, "SELECT id FROM visits WHERE latest") == [(40,)]


async def test_rows_outside_of_the_partitions_get_some_of_their_own(pg: Postgres) -> None:
    await run(
        pg,
        "CREATE TABLE visits (id int PRIMARY KEY, at date NOT NULL);"
        "INSERT INTO visits VALUES (1, now())",
    )
    visits = pg.convert("visits", by="at", every="month")
    await visits.run()
    await run(pg, "INSERT INTO visits VALUES (2, now() - interval '2 years')")
    with pytest.raises(StoreRejected, match=r"rows outside of all partitions.*run the conversion"):
        await visits.swap()
    await visits.run()
    await visits.swap()
    assert await run(pg, "SELECT id FROM visits ORDER BY id") == [(1,), (2,)]


async def test_a_table_that_was_changed_meanwhile_is_not_swapped(
    pg: Postgres, visits: Conversion
) -> None:
    await visits.run()
    await run(pg, "ALTER TABLE visits ADD COLUMN extra int DEFAULT 3")
    with pytest.raises(StoreRejected, match="must be equal, but extra changed meanwhile"):
        await visits.swap()


async def test_tables_that_differ_are_not_swapped(pg: Postgres, visits: Conversion) -> None:
    await visits.run()
    await run(pg, "DELETE FROM visits_partitioned WHERE id = 1")
    await run(pg, "UPDATE faena.conversions SET verified_at = now() - interval '30 days'")
    await visits.swap()  # what is missing is copied again
    assert await run(pg, "SELECT count(*) FROM visits") == [(200,)]


async def test_a_row_that_differs_in_the_tail_keeps_the_swap_from_happening(
    pg: Postgres, visits: Conversion
) -> None:
    await run(pg, "INSERT INTO visits (organization_id, minutes) VALUES ('acme', 3)")
    await visits.run()
    await run(pg, "SET LOCAL session_replication_role TO replica;"
              "UPDATE visits_partitioned SET minutes = 4 WHERE id = 201")  # fmt: skip
    with pytest.raises(StoreRejected, match=r"must be equal, but from .*: 1 rows in the plain"):
        await visits.swap()
    assert (await visits.status()).step == "copied"


async def test_a_conversion_is_cancelled_without_a_trace(pg: Postgres, visits: Conversion) -> None:
    before = await described(pg)
    await visits.run()
    await visits.cancel()
    assert await described(pg) == before
    left = (
        "SELECT relname FROM pg_class WHERE relname ~ '^visits_.*(_20|partitioned)'"
        " UNION SELECT tgname FROM pg_trigger WHERE tgname LIKE 'faena%'"
        " UNION SELECT proname FROM pg_proc WHERE proname ~ 'ward$'"
        " AND pronamespace = 'faena'::regnamespace"
    )
    assert await run(pg, left) == []
    with pytest.raises(StoreRejected, match=r"no conversion of public.visits was begun"):
        await visits.status()
    await visits.run()
    await visits.swap()


async def test_a_process_that_is_late_changes_nothing_after_the_swap_of_another(
    pg: Postgres, visits: Conversion
) -> None:
    await visits.run()
    late = Copying(pg, declaration("visits", by="at", every="week", ahead=2), None)
    async with pg.transaction() as connection:
        table = await find_table(connection, Name(None, "visits"))
    plain, record = await late._look(table)
    await visits.swap()
    with pytest.raises(StoreRejected, match="is converted already"):
        await late._mirror(plain, *record.reach, "timestamp with time zone")
    assert (await visits.status()).step == "swapped"


async def test_a_cancellation_that_was_interrupted_is_ended_by_another(
    pg: Postgres, visits: Conversion
) -> None:
    await visits.run()
    await run(pg, "UPDATE faena.conversions SET step = 'cancelling'")
    for refused in (visits.run, visits.swap):
        with pytest.raises(StoreRejected, match="cancel"):
            await refused()
    await visits.cancel()
    assert await run(pg, "SELECT to_regclass('visits_partitioned')") == [(None,)]


async def test_steps_are_taken_in_order(pg: Postgres, visits: Conversion) -> None:
    with pytest.raises(StoreRejected, match=r"no conversion of public.visits was begun"):
        await visits.swap()
    await visits.run()
    await visits.run()
    for step in (visits.revert, visits.finish):
        with pytest.raises(StoreRejected, match=r"must be swapped.* is copied: swap"):
            await step()
    with pytest.raises(StoreRejected, match="was begun by week of at"):
        await pg.convert("visits", by="at", every="day").run()
    await visits.swap()
    with pytest.raises(StoreRejected, match="is converted already"):
        await visits.run()
    with pytest.raises(StoreRejected, match=r"must be preparing or .* to cancel"):
        await visits.cancel()
    await visits.finish()
    with pytest.raises(StoreRejected, match=r"must be swapped to revert it.* is finished"):
        await visits.revert()
    assert await run(pg, "SELECT count(*) FROM visits_before_partitions") == [(200,)]


PLAIN = "CREATE TABLE visits (id int PRIMARY KEY, at date NOT NULL, span int4range, n int)"
OBSTACLES = {
    "CREATE TABLE visits (at date NOT NULL)": "must have a primary key",
    "CREATE TABLE visits (id int PRIMARY KEY)": "must have the column at",
    "CREATE TABLE visits (id int PRIMARY KEY, at date)": "column at must be NOT NULL",
    "CREATE TABLE visits (id int PRIMARY KEY, at int NOT NULL)": "a date or a timestamp, got int",
    "CREATE VIEW visits AS SELECT 1 AS id, now() AS at": "must be a plain table, got one of kind",
    "CREATE UNLOGGED TABLE visits (id int PRIMARY KEY, at date NOT NULL)": "ordinary logged table",
    f"{PLAIN}; CREATE TABLE x (v int REFERENCES visits)": "x_v_fkey of x",
    f"{PLAIN}; ALTER TABLE visits ADD CONSTRAINT apart EXCLUDE USING gist (span WITH &&)": "apart",
    f"{PLAIN}; ALTER TABLE visits ADD CONSTRAINT once UNIQUE (n)": "must contain at .*got once",
    f"{PLAIN}; CREATE UNIQUE INDEX lonely ON visits (n) WHERE n > 3": "got lonely",
    f"{PLAIN}; ALTER TABLE visits ADD CONSTRAINT late UNIQUE (n, at) DEFERRABLE": "got late",
    f"{PLAIN}; ALTER TABLE visits ADD CONSTRAINT maybe CHECK (n > 1) NOT VALID": "got maybe",
    f"{PLAIN}; CREATE VIEW seen AS SELECT * FROM visits": "got rule _RETURN on view seen",
    f"{PLAIN}; CREATE FUNCTION f(visits) RETURNS int LANGUAGE sql AS 'SELECT 1'": "function f",
    f"{PLAIN}; CREATE RULE r AS ON DELETE TO visits DO INSTEAD NOTHING": "no rules, got r",
    f"{PLAIN}; CREATE PUBLICATION pub FOR TABLE visits": "no publication, got pub",
    f"{PLAIN}; ALTER TABLE visits REPLICA IDENTITY FULL": "replica identity must be",
    f"{PLAIN}; ALTER TABLE visits FORCE ROW LEVEL SECURITY": "must not be forced",
    f"{PLAIN}; CREATE TABLE child () INHERITS (visits)": "no children, got child",
    f"{PLAIN}; CREATE TABLE visits_partitioned ()": "visits_partitioned must be free",
    f"{PLAIN}; INSERT INTO visits VALUES (1, '1900-01-01')": "at most 3000 partitions",
    f"{PLAIN}; INSERT INTO visits VALUES (1, 'infinity')": "in the years 1 to 9999, got infinity",
}


@pytest.mark.parametrize("definition", OBSTACLES)
async def test_what_cannot_be_converted_is_refused_by_name(pg: Postgres, definition: str) -> None:
    await run(pg, definition)
    with pytest.raises(StoreRejected, match=OBSTACLES[definition]):
        await pg.convert("visits", by="at", every="day").run()
    assert await run(pg, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'faena%'") == [(0,)]


async def test_a_wrong_call_is_refused(pg: Postgres) -> None:
    with pytest.raises(ConfigError, match="every must be given for a table"):
        pg.convert("visits", by="at")
    with pytest.raises(ConfigError, match="table nothing does not exist"):
        await pg.convert("nothing", every="day").run()
    with pytest.raises(ConfigError, match=r"use pg.convert"):
        await pg.conversion("visits").run()


async def test_rows_that_arrive_by_replication_reach_both_tables(
    pg: Postgres, visits: Conversion
) -> None:
    arrive = """
        SET LOCAL session_replication_role TO replica;
        INSERT INTO visits (organization_id, minutes) VALUES ('beta', 7);
    """
    await visits.run()
    await run(pg, arrive)
    assert await run(pg, "SELECT count(*) FROM visits_partitioned") == [(201,)]
    await visits.swap()
    await run(pg, arrive)
    assert await run(pg, "SELECT count(*) FROM visits_before_partitions") == [(202,)]


async def test_who_may_only_insert_inserts_during_a_conversion_too(
    pg: Postgres, database: str
) -> None:
    """The mirror reads and deletes besides, which is not in the role's rights."""
    role = f"role {(await run(pg, 'SELECT current_database()'))[0][0]}"
    await run(
        pg,
        "CREATE TABLE plain (id int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());"
        f'CREATE ROLE "{role}" LOGIN; GRANT INSERT ON plain TO "{role}"',
    )
    conversion = pg.convert("plain", by="at", every="week", ahead=2)
    url = database.replace("postgres@", f"{quote(role)}@")
    counts = "SELECT (SELECT count(*) FROM plain), (SELECT count(*) FROM {})"
    async with Postgres(Faena("writer"), url, relay=False) as writer:
        await conversion.run()
        await run(writer, "INSERT INTO plain VALUES (1)")
        assert await run(pg, counts.format("plain_partitioned")) == [(1, 1)]
        await conversion.swap()
        await run(writer, "INSERT INTO plain VALUES (2)")
        assert await run(pg, counts.format("plain_before_partitions")) == [(2, 2)]
