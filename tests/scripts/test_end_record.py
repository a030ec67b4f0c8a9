"""A change is moved to the audit trail once, with its outcome."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena.engine.calls.access import SHARD, AccessCalls
from tests._support.rig import Rig


@pytest.fixture
async def calls(rig: Rig) -> AsyncIterator[AccessCalls]:
    yield AccessCalls(rig.engine)
    for name in ("trail", "trail_open"):
        await rig.engine.command("DEL", SHARD, name)


async def test_a_change_is_under_way_until_its_end_is_written_once(calls: AccessCalls) -> None:
    await calls.begin_record("1", b"begun")
    assert await calls.open_records() == [b"begun"]
    for _ in range(2):
        await calls.end_record("1", b"ended")
    assert await calls.open_records() == []
    assert [packed for _, packed in await calls.records("+", 10)] == [b"ended"]


async def test_records_are_read_page_by_page_the_newest_first(calls: AccessCalls) -> None:
    for number in range(5):
        await calls.begin_record(str(number), b"")
        await calls.end_record(str(number), str(number).encode())
    first = await calls.records("+", 3)
    rest = await calls.records(first[-1][0], 3)
    assert [packed for _, packed in [*first, *rest]] == [b"4", b"3", b"2", b"1", b"0"]
