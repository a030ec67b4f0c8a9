"""Two tenants with something in every place, for erasures."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from faena import Discard, Faena, Queue
from faena.pg import FOREVER, Archive, Bucket, Connection, Postgres
from faena.states import State
from tests._support.eventually import eventually
from tests._support.working import serving

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
SECRET = "s" * 32
YEAR = {"start": date(2024, 1, 1), "end": date(2025, 12, 31)}
LEASE = "1s"
"""Of archivers and erasures, in tests that wait for one to end."""

TABLES = """
    CREATE TABLE visits (id int PRIMARY KEY, org text, at timestamptz NOT NULL, note text);
    CREATE TABLE pings (id int, org text, at timestamptz, PRIMARY KEY (id, at))
        PARTITION BY RANGE (at);
    CREATE TABLE invoices (id int PRIMARY KEY, org text, at date NOT NULL);
    CREATE TABLE deeds (id int PRIMARY KEY, org text, at timestamp NOT NULL);
    CREATE TABLE plans (id int PRIMARY KEY, org int, at timestamptz NOT NULL);
    CREATE TABLE effected (job text);
"""
ROWS = """
    INSERT INTO visits SELECT n, CASE n % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 2 THEN 'a/b' END,
        '2025-03-01 00:00+00'::timestamptz - n * interval '1 hour', 'note ' || n
        FROM generate_series(1, 96) n;
    INSERT INTO pings SELECT n, CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END,
        '2025-03-01 00:00+00'::timestamptz - n * interval '1 hour' FROM generate_series(1, 72) n;
    INSERT INTO invoices SELECT n, CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END,
        current_date - n * 365 FROM generate_series(1, 16) n;
    INSERT INTO deeds SELECT n, CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END, now()
        FROM generate_series(1, 6) n;
    INSERT INTO plans SELECT n, n % 2, now() FROM generate_series(1, 6) n;
"""


class World:
    """A program that holds data of its tenants `a` and `b`."""

    def __init__(self, app: Faena, pg: Postgres, folder: Path | Bucket, lease: str = LEASE) -> None:
        self.app, self.pg = app, pg
        self.folder = folder if isinstance(folder, Path) else Path()
        self.mail: Queue = app.queue("mail")

        @self.mail.task(attempts=1)
        async def send(number: int) -> int:
            if number == 13:
                raise Discard("no such address: 13 Mill Lane")
            return number

        @self.mail.task
        @pg.effect
        async def charge(transaction: Connection, number: int) -> str:
            await transaction.execute("INSERT INTO effected VALUES (%s)", [str(number)])
            return f"charged {number}"

        self.send, self.charge = send, charge
        archive = Archive(to=folder, rows=25)
        given: dict[str, Any] = {"by": "at", "tenant": "org"}
        self.partitioned = pg.partitioned("pings", by="at", every="day", ahead=1, tenant="org")
        pg.retain("visits", keep="2d", then=archive, **given)
        pg.retain("pings", keep="2d", then=archive, **given)
        pg.retain("invoices", keep="20y", legal="10y", then=archive, **given)
        pg.retain("deeds", keep=FOREVER, **given)
        pg.retain("plans", keep="3d", then="delete", **given)
        self.retrievals = pg.retrieval(secrets=SECRET, to=folder)
        self.erasures = pg.erasure(rows=7, wait="50ms", lease=lease)

    async def fill(self) -> None:
        """Something in every place."""
        await self.run(TABLES)
        await self.partitioned.ensure(at=NOW, since=date(2025, 2, 25))
        await self.run(ROWS)
        for done in await self.pg.archive(at=NOW):
            assert done.problem is None, done
        for tenant in ("a", "b"):
            for number in (1, 2, 13):
                await self.send.enqueue(number, tenant=tenant, id=f"{tenant}-{number}")
            await self.charge.enqueue(7, tenant=tenant)
            await self.retrievals.retrieve("visits", tenant=tenant, **YEAR)
        async with serving(self.app):
            await eventually(self.is_quiet)
        await self.pg.history.read_now()
        await self.pg.outbox.publish()
        async with self.pg.transaction() as connection:
            for tenant in ("a", "b", "b"):
                await self.pg.outbox.enqueue(connection, self.send, 5, tenant=tenant)

    async def is_quiet(self) -> bool:
        """Whether nothing waits or runs."""
        counts = [await queue.counts() for queue in self.app.queues.values()]
        states = (State.READY, State.RUNNING, State.DELAYED, State.BLOCKED)
        return not any(one[state.value] for one in counts for state in states)

    async def run(self, words: str, *given: Any) -> list[Any]:
        async with self.pg.transaction() as connection:
            found = await connection.execute(words.encode(), given or None)
            return await found.fetchall() if found.description else []

    async def held(self, tenant: str) -> dict[str, Any]:
        """Everything of one tenant, place by place."""
        held: dict[str, Any] = {}
        for table in ("visits", "pings", "invoices", "deeds"):
            words = f"SELECT * FROM {table} WHERE org = %s ORDER BY 1"
            held[table] = await self.run(words, tenant)
        held["archives"] = await self.run(
            "SELECT key, rows, sha256, state FROM faena.archives WHERE tenant = %s ORDER BY 1",
            tenant,
        )
        held["retrievals"] = await self.run(
            "SELECT id, keys FROM faena.retrievals WHERE tenant = %s AND state <> 'erased'"
            " ORDER BY 1",
            tenant,
        )
        held["outbox"] = await self.run(
            "SELECT * FROM faena.outbox WHERE tenant = %s ORDER BY 1", tenant
        )
        held["effects"] = await self.run(
            "SELECT queue, job, result FROM faena.effects WHERE tenant = %s ORDER BY 2", tenant
        )
        held["history"] = await self.run(
            "SELECT id, state, finished_at FROM faena.history WHERE tenant = %s ORDER BY 1", tenant
        )
        keys = [key for (key, *_) in held["archives"]]
        keys += [key for _, some in held["retrievals"] for key in some]
        held["files"] = {key: (self.folder / key).read_bytes() for key in keys}
        held["jobs"] = await self.jobs(tenant)
        return held

    async def jobs(self, tenant: str) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        inspector = (await self.app.runtime()).inspector
        for queue in self.app.queues:
            for state in State:
                page = await inspector.page(queue, state, limit=500)
                found += [(queue, j.id, state) for j in page.jobs if j.tenant == tenant]
        return sorted(found)

    async def done(self, id_: str) -> Any:
        """The erasure, when a worker has carried it out."""

        async def is_done() -> bool:
            return (await self.erasures.look(id_)).state == "done"

        async with serving(self.app):
            await eventually(is_done)
        return await self.erasures.look(id_)
