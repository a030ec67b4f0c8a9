"""Five tables that grow by the day: partitions ahead, and a plain table converted while it is used.

python -m examples.partitions
"""

import asyncio
from collections.abc import Awaitable, Callable

from faena import Faena
from faena.pg import Postgres
from faena.pg.migration import migrate

app = Faena("campo")
pg = Postgres(app)  # FAENA_PG_URL, else a PostgreSQL of its own under .faena/

jobs = pg.partitioned(
    "campo.jobs", every="month", tenant="organization_id", indexes=[("assigned_to", "status")]
)
messages = pg.partitioned("campo.whatsapp_messages", every="week", indexes=["conversation_id"])
locations = pg.partitioned(
    "campo.technician_locations", by="recorded_at", every="day", tenant="organization_id"
)
audit = pg.partitioned("campo.audit_logs", every="month", tenant="organization_id")
notices = pg.partitioned("campo.notification_logs", every="week", tenant="organization_id")

SCHEMA = """
DROP SCHEMA IF EXISTS campo CASCADE;
CREATE SCHEMA campo;
DELETE FROM faena.conversions WHERE table_name = 'campo.technician_locations';
CREATE TABLE campo.jobs (
    id text NOT NULL, organization_id text NOT NULL, customer_id text, assigned_to text,
    status text NOT NULL DEFAULT 'PENDING', scheduled_date timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE campo.whatsapp_messages (
    id text NOT NULL, conversation_id text NOT NULL, direction text NOT NULL, content text,
    created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE campo.audit_logs (
    id text NOT NULL, organization_id text NOT NULL, action text NOT NULL, entity text,
    created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE campo.notification_logs (
    id text NOT NULL, organization_id text NOT NULL, channel text NOT NULL, status text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE campo.technician_locations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, organization_id text NOT NULL,
    user_id text NOT NULL, latitude decimal(10, 8) NOT NULL, longitude decimal(11, 8) NOT NULL,
    accuracy decimal(6, 2), recorded_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON campo.technician_locations (recorded_at);
INSERT INTO campo.technician_locations (organization_id, user_id, latitude, longitude, recorded_at)
    SELECT 'org-' || n % 5, 'user-' || n % 40, -34.6, -58.4, now() - n * interval '30 seconds'
    FROM generate_series(1, 20000) n;
"""
DAY = """
EXPLAIN (COSTS OFF) SELECT * FROM campo.technician_locations WHERE organization_id = 'org-3'
AND recorded_at >= '{0} 00:00+00' AND recorded_at < '{0} 12:00+00'
"""


async def execute(text: str) -> list[tuple[object, ...]]:
    async with pg.transaction() as connection:
        found = await connection.execute(text.encode())
        return await found.fetchall() if found.description else []


async def ping(until: asyncio.Event) -> int:
    """A technician's phone, which knows nothing of partitions."""
    number = 0
    while not until.is_set():
        await execute(
            "INSERT INTO campo.technician_locations (organization_id, user_id, latitude, longitude)"
            " VALUES ('org-3', 'user-3', -34.6, -58.4)"
        )
        number += 1
    return number


async def beside_pings(work: Callable[[], Awaitable[object]]) -> int:
    """Do something while pings arrive; returns how many did."""
    done = asyncio.Event()
    pinging = asyncio.create_task(ping(done))
    try:
        await work()
    finally:
        done.set()
    return await pinging


async def show() -> None:
    for view in await pg.partitions():
        until = f"until {view.runway:%Y-%m-%d}" if view.runway else "none for now"
        told = "; ".join(view.problems) or "no problem"
        print(f"  {view.table:28}{len(view.partitions):4} by {view.every:6}{until}, {told}")


async def convert() -> None:
    conversion = pg.convert("campo.technician_locations")
    written = await beside_pings(conversion.run)
    status = await conversion.status()
    print(f"copied {status.copied} pings and compared {status.verified} days")
    written += await beside_pings(conversion.swap)
    (count,) = (await execute("SELECT count(*) FROM campo.technician_locations"))[0]
    print(f"swapped; lost: {20000 + written - int(str(count))}")
    await conversion.finish(drop=True)


async def main() -> None:
    async with pg:
        await migrate(pg)
        await execute(SCHEMA)
        made = await pg.ensure_partitions()
        new = sum(len(names) for names in made.made.values())
        print(f"made {new} partitions and indexes; left as they are: {', '.join(made.problems)}")
        await show()
        await convert()
        await locations.ensure()
        await show()
        day = (await locations.view()).partitions[3].start
        for (line,) in await execute(DAY.format(f"{day:%Y-%m-%d}")):
            print(f"  {line}")


if __name__ == "__main__":
    asyncio.run(main())
