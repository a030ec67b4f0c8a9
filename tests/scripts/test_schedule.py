"""schedule.lua: records are written by whoever has read them last."""

from __future__ import annotations

import asyncio

import pytest

from faena.engine.calls.scheduling import Change, read, write
from faena.engine.keys import channel
from tests._support.eventually import eventually
from tests._support.rig import SECOND, T0, Rig
from tests._support.schedules import NEW, OLD, plant


async def test_a_record_is_written_with_its_version_and_its_due_instant(rig: Rig) -> None:
    assert await write(rig.engine, "q", "s", Change("", OLD, b'{"a":1}', T0 + 7))
    assert await rig.dump() == {
        "schedules": {"s": f'{OLD}\n{{"a":1}}'},
        "schedule_due": [("s", T0 + 7)],
    }
    now, found = await read(rig.engine, "q", ["s", "none"])
    assert now == T0
    assert found["s"] == ("s", OLD, b'{"a":1}', T0 + 7)
    assert "none" not in found


async def test_one_that_is_never_due_stands_in_no_line(rig: Rig) -> None:
    await plant(rig)
    assert await write(rig.engine, "q", "s", Change(OLD, NEW, b"{}", None))
    assert await rig.dump() == {"schedules": {"s": f"{NEW}\n{{}}"}}


async def test_an_empty_record_removes_it(rig: Rig) -> None:
    await plant(rig)
    transfer = Change(OLD, NEW, b"", None)
    assert await write(rig.engine, "q", "s", transfer)
    assert await rig.dump() == {}
    assert await write(rig.engine, "q", "s", transfer)  # sent again
    assert await rig.dump() == {}


@pytest.mark.parametrize("expected", ["", NEW, "anything"])
async def test_whoever_has_read_another_version_changes_nothing(rig: Rig, expected: str) -> None:
    await plant(rig)
    await rig.remember()
    assert not await write(rig.engine, "q", "s", Change(expected, "3", b"[]", T0 + SECOND))
    assert await rig.is_untouched()


async def test_a_change_sent_again_is_the_same_change(rig: Rig) -> None:
    await plant(rig)
    change = Change(OLD, NEW, b"[]", T0 + SECOND)
    assert await write(rig.engine, "q", "s", change)
    await rig.remember()
    assert await write(rig.engine, "q", "s", change)
    assert await rig.is_untouched()


async def test_of_many_at_once_one_writes(rig: Rig) -> None:
    await plant(rig)
    changes = [Change.of(OLD, b"%d" % number, T0) for number in range(20)]
    written = await asyncio.gather(*(write(rig.engine, "q", "s", one) for one in changes))
    assert sorted(written) == [False] * 19 + [True]
    stored = (await rig.dump())["schedules"]["s"].partition("\n")[2]
    assert stored == str(written.index(True))


async def test_whoever_listens_is_told(rig: Rig) -> None:
    heard: list[bytes] = []
    listening = await rig.engine.wire.listen(
        {channel(rig.engine.namespace, "schedules"): heard.append}
    )
    await plant(rig)
    await eventually(lambda: heard)
    assert heard == [f"{rig.engine.namespace}:{{q}}:s".encode()]
    await listening.close()


async def test_a_queue_that_is_obliterated_has_no_schedules(rig: Rig) -> None:
    await plant(rig)
    await rig.obliterate()
    assert await rig.dump() == {}
