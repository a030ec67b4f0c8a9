"""Roll-ups beside a model in Python, on rows around the days when clocks change."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena import Faena
from faena.pg import Postgres
from faena.pg.partition.interval import Every, period_of
from tests._support.search import searching

FIRST, LAST = date(2025, 10, 20), date(2025, 11, 5)
ZONES = ("UTC", "Europe/Madrid", "America/Havana", "Australia/Lord_Howe", "Pacific/Kiritimati")
MEASURES = {
    "jobs": "count(*)",
    "paid": "count(total)",
    "revenue": "sum(total)",
    "least": "min(total)",
    "kinds": "count(DISTINCT kind) FILTER (WHERE kind <> '%')",
}


class Row(NamedTuple):
    org: str | None
    kind: str
    at: datetime
    total: Decimal | None


_INSTANTS = st.builds(
    lambda us: datetime(2025, 10, 18, tzinfo=UTC) + timedelta(microseconds=us),
    st.integers(0, 21 * 86_400_000_000),
)
_EDGES = st.builds(
    lambda day, hour, us: (
        datetime(2025, 10, 20, tzinfo=UTC) + timedelta(days=day, hours=hour, microseconds=us)
    ),
    st.integers(0, 16),
    st.integers(0, 23),
    st.integers(-1, 1),
)
ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from(["acme", "beta", None]),
        st.sampled_from(["a", "b", "%"]),
        _INSTANTS | _EDGES,
        st.none() | st.decimals(-99, 99, places=2),
    ),
    max_size=25,
)


def model(rows: list[Row], every: Every, zone: str) -> dict[tuple[date, str | None], Any]:
    """What each group of each period must have."""
    groups: defaultdict[tuple[date, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        start = period_of(row.at.astimezone(ZoneInfo(zone)).date(), every).start
        groups[start, row.org].append(row)
    return {key: _measured(some) for key, some in groups.items()}


def _measured(rows: list[Row]) -> tuple[Any, ...]:
    totals = [row.total for row in rows if row.total is not None]
    kinds = {row.kind for row in rows} - {"%"}
    revenue = sum(totals) if totals else None
    return len(rows), len(totals), revenue, min(totals, default=None), len(kinds)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """Hypothesis calls a plain function many times."""
    with asyncio.Runner() as runner:
        yield runner


@given(
    before=ROWS,
    late=ROWS,
    gone=st.integers(0, 25),
    every=st.sampled_from(["day", "week", "month"]),
    zone=st.sampled_from(ZONES),
)
@searching(25)
def test_aggregates_are_those_of_the_model(
    database: str,
    runner: asyncio.Runner,
    before: list[Row],
    late: list[Row],
    gone: int,
    every: Every,
    zone: str,
) -> None:
    async def work() -> None:
        async with Postgres(Faena("model"), database, relay=False) as pg:
            async with pg.transaction() as connection:
                await connection.execute(
                    "DROP TABLE IF EXISTS sales, sold; CREATE TABLE sales (number serial,"
                    " org text, kind text, at timestamptz, total numeric)"
                )
            made = pg.rollup(
                "sold", of="sales", by="at", every=every, group=["org"], measures=MEASURES, tz=zone
            )
            await _insert(pg, before)
            await made.backfill(FIRST, LAST)
            await _check(pg, before, every, zone)
            await _insert(pg, late)
            async with pg.transaction() as connection:
                await connection.execute("DELETE FROM sales WHERE number <= %s", [gone])
            await made.backfill(FIRST, LAST)
            await _check(pg, [*before, *late][gone:], every, zone)

    runner.run(work())


async def _insert(pg: Postgres, rows: list[Row]) -> None:
    async with pg.transaction() as connection, connection.cursor() as cursor:
        await cursor.executemany(
            "INSERT INTO sales (org, kind, at, total) VALUES (%s, %s, %s, %s)", rows
        )


async def _check(pg: Postgres, rows: list[Row], every: Every, zone: str) -> None:
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT * FROM sold")
        kept = [(tuple(row[:2]), tuple(row[2:])) for row in await found.fetchall()]
    low, high = period_of(FIRST, every).start, period_of(LAST, every).end
    wanted = {key: one for key, one in model(rows, every, zone).items() if low <= key[0] < high}
    assert len(kept) == len(wanted)
    assert dict(kept) == wanted
