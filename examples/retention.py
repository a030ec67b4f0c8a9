"""How long eight tables are kept: archived, aggregated and deleted, or never touched.

python -m examples.retention
"""

import asyncio
import shutil
from pathlib import Path

from faena import Faena
from faena.pg import FOREVER, Archive, Postgres
from faena.pg.migration import migrate

app = Faena("campo-retention")
pg = Postgres(app)  # FAENA_PG_URL, else a PostgreSQL of its own under .faena/
archive = Archive()  # in .faena/archives; or Archive(to="s3://campo-cold/archives")
folder = Path(app.directory) / "archives"
TENANT = "organization_id"

pg.partitioned("cold.technician_locations", by="recorded_at", every="day", tenant=TENANT, ahead=1)

pg.retain("cold.jobs", keep="2y", tenant=TENANT, then=archive, every="month")
pg.retain("cold.customers", keep=FOREVER)
pg.retain("cold.invoices", keep=FOREVER, legal="10y")  # AFIP: never deleted
pg.retain("cold.whatsapp_messages", keep="1y", tenant=TENANT, then=archive, every="month")
pg.retain(
    "cold.technician_locations",
    keep="90d",
    then="delete",
    aggregate="""
        INSERT INTO cold.location_days
        SELECT organization_id, user_id, recorded_at::date, count(*) FROM faena_expired
        GROUP BY 1, 2, 3
        ON CONFLICT (organization_id, user_id, day)
        DO UPDATE SET pings = location_days.pings + excluded.pings
    """,
)
pg.retain("cold.audit_logs", keep="3y", legal="3y", tenant=TENANT, then=archive, every="month")
pg.retain("cold.notification_logs", keep="6mo", tenant=TENANT, then=archive, every="week")
pg.retain("cold.ratings", keep=FOREVER)

PLAIN = (
    "jobs",
    "customers",
    "invoices",
    "whatsapp_messages",
    "audit_logs",
    "notification_logs",
    "ratings",
)
SCHEMA = """
DROP SCHEMA IF EXISTS cold CASCADE;
DELETE FROM faena.archives WHERE starts_with(table_name, 'cold.');
DELETE FROM faena.retentions WHERE starts_with(table_name, 'cold.');
CREATE SCHEMA cold;
CREATE TABLE cold.technician_locations (
    id bigint, organization_id text, user_id text, latitude decimal(10, 8), recorded_at timestamptz,
    PRIMARY KEY (id, recorded_at)
) PARTITION BY RANGE (recorded_at);
CREATE TABLE cold.location_days (
    organization_id text, user_id text, day date, pings bigint,
    PRIMARY KEY (organization_id, user_id, day)
);
"""
TABLE = """
CREATE TABLE cold.{0} (
    id bigint PRIMARY KEY, organization_id text NOT NULL, body jsonb,
    created_at timestamptz NOT NULL
);
CREATE INDEX ON cold.{0} (created_at);
INSERT INTO cold.{0} SELECT n, 'org-' || n % 3, '{{"n": 1.50}}', now() - n * interval '40 days'
    FROM generate_series(1, 90) n;
"""
PINGS = """
CREATE TABLE cold.technician_locations_long_ago PARTITION OF cold.technician_locations
    FOR VALUES FROM ('2024-05-01 00:00+00') TO ('2024-05-02 00:00+00');
INSERT INTO cold.technician_locations SELECT n, 'org-' || n % 3, 'user-' || n % 10, -34.6,
    '2024-05-01 08:00+00'::timestamptz + n * interval '30 seconds' FROM generate_series(1, 1000) n;
"""


async def execute(text: str) -> list[tuple[object, ...]]:
    async with pg.transaction() as connection:
        found = await connection.execute(text.encode())
        return await found.fetchall() if found.description else []


async def main() -> None:
    async with pg:
        await migrate(pg)
        shutil.rmtree(folder, ignore_errors=True)
        await execute(SCHEMA + "".join(TABLE.format(name) for name in PLAIN) + PINGS)
        for done in await pg.archive():
            told = done.problem or f"{done.rows:4} rows left, {done.objects:3} objects"
            print(f"  {done.table:28}{told}")
        ((days, pings),) = await execute("SELECT count(*), sum(pings) FROM cold.location_days")
        print(f"{pings} pings are {days} rows of statistics")
        mine = await pg.archives("cold.jobs", tenant="org-1")
        print(f"org-1 has {sum(one.rows for one in mine)} archived jobs, in folders of its own")
        await execute("CREATE TABLE cold.jobs_again (LIKE cold.jobs INCLUDING ALL)")
        back = await pg.restore("cold.jobs", into="cold.jobs_again", tenant="org-1")
        print(f"restored {back.rows}; {await damaged()}")


def truncate() -> None:
    """Take the last byte of some object."""
    one = next(folder.rglob("*.zst"))
    one.write_bytes(one.read_bytes()[:-1])


async def damaged() -> str:
    """What happens to an archive that somebody has changed."""
    truncate()
    tables = [name for name in pg.retentions if (await pg.archives(name))]
    found = [await pg.verify_archives(name) for name in tables]
    return f"one object of {sum(each.objects for each in found)} is damaged: " + " ".join(
        problem.partition("…")[0] for each in found for problem in each.problems
    )


if __name__ == "__main__":
    asyncio.run(main())
