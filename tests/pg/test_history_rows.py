"""Whatever an entry has, its jobs have their rows, and those beside them too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena import Faena
from faena.engine.calls.history import STATES, Entry, Finishing
from faena.pg import History, Postgres
from faena.pg.history.erasure import erase
from faena.pg.history.partition import Keeper
from faena.pg.history.record import row_of
from faena.pg.history.search import to_us
from faena.pg.history.store import Store, insert, instant
from tests._support.search import searching

NOW = int(datetime.now(UTC).timestamp()) * 1_000_000


def finishing(**given: Any) -> Finishing:
    """An end of a job with nothing special."""
    plain: dict[str, Any] = {
        "id": "a",
        "queue": "q",
        "state": "dead",
        "finished_at": NOW,
        "task": "t",
        "tenant": None,
        "key": None,
        "priority": 1,
        "attempts": 1,
        "losses": 0,
        "enqueued_at": NOW - 5,
        "started_at": NOW - 3,
        "worker": "w",
        "error": "E",
        "code": None,
        "message": "m",
        "origin": "a",
        "retry_of": None,
        "flow": None,
        "group": None,
        "payload": None,
        "result": None,
    }
    return Finishing(**{**plain, **given})


HOSTILE = [
    {"payload": b"1e999999"},
    {"payload": b"1e-999999", "result": b'"\\u0000"'},
    {"payload": b"no json"},
    {"payload": b'"\\ud800"'},
    {"payload": b"\xff\xfe"},
    {"payload": b"[" * 30_000 + b"]" * 30_000},
    {"message": "\0\ud800", "error": "\0", "worker": "\0", "task": "\0", "key": "\0"},
    {"tenant": "x" * 10_000, "origin": "\ud83d"},
    {"attempts": 2**70, "losses": -(2**70), "priority": 2**40},
    {"enqueued_at": 2**62, "started_at": -5},
]


@pytest.fixture
async def kept(app: Faena, database: str) -> AsyncIterator[Postgres]:
    async with Postgres(app, database, relay=False, history=History(payloads=True)) as pg:
        await Keeper(pg, pg.history.options).ensure()
        yield pg


async def put(pg: Postgres, *some: Finishing) -> None:
    store = Store(pg.history.options, "n")
    async with pg.transaction() as connection:
        assert await store.put(connection, "q", [Entry("1-1", some)]) == []


@pytest.mark.parametrize("hostile", HOSTILE, ids=str)
async def test_a_hostile_job_has_a_row_and_so_have_its_neighbours(
    kept: Postgres, hostile: dict[str, Any]
) -> None:
    names = ["a", "b", "c", "d", "e"]
    some = [finishing(id=name, payload=b'{"n":1}') for name in names]
    some[2] = finishing(id="c", **hostile)
    await put(kept, *some)
    found = (await kept.history.search()).jobs
    assert sorted(one.id for one in found) == names
    assert [one.payload for one in found if one.id != "c"] == [{"n": 1}] * 4


async def test_instants_and_durations_are_exact(kept: Postgres) -> None:
    at = NOW + 123_457
    await put(kept, finishing(finished_at=at, started_at=at - 1, enqueued_at=at - 999_999))
    (one,) = (await kept.history.search()).jobs
    assert (one.wait_s, one.run_s) == (0.999998, 0.000001)
    assert to_us(one.finished_at) == at


@given(text=st.text(max_size=40), payload=st.binary(max_size=30), state=st.sampled_from(STATES))
@searching(100)
def test_a_row_is_json_without_nul(text: str, payload: bytes, state: str) -> None:
    row = row_of(finishing(message=text, task=text, payload=payload, state=state))
    encoded = msgspec.json.encode(row)
    assert b"\\u0000" not in encoded
    assert msgspec.json.decode(encoded) == row


async def test_what_ended_at_the_instant_of_an_erasure_is_not_stored(kept: Postgres) -> None:
    await erase(kept, "gone", instant(NOW))
    ends = [finishing(id=f"{n}", tenant="gone", finished_at=NOW + n) for n in (-1, 0, 1)]
    async with kept.transaction() as connection:
        await insert(connection, [row_of(one) for one in ends])
        found = await connection.execute("SELECT id FROM faena.history")
        assert await found.fetchall() == [("1",)]


async def test_an_erasure_by_a_clock_that_was_set_back_lets_nothing_in_again(
    kept: Postgres,
) -> None:
    for until in (NOW, NOW - 60_000_000):
        await erase(kept, "gone", instant(until))
    async with kept.transaction() as connection:
        await insert(connection, [row_of(finishing(tenant="gone", finished_at=NOW - 1))])
        found = await connection.execute("SELECT id FROM faena.history")
        assert await found.fetchall() == []
