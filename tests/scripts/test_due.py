"""due.lua: what is due, what is next, what is missing."""

from __future__ import annotations

from faena.engine.calls.scheduling import MOST, read_due
from tests._support.rig import SECOND, T0, Rig
from tests._support.schedules import plant


async def test_what_is_due_comes_first_due_first(rig: Rig) -> None:
    for name, due in (("late", T0 - SECOND), ("now", T0), ("soon", T0 + 1), ("off", None)):
        await plant(rig, due, name)
    await rig.remember()
    found = await read_due(rig.engine, "q", [])
    assert [(one.name, one.due, one.record) for one in found.due] == [
        ("late", T0 - SECOND, b"{}"),
        ("now", T0, b"{}"),
    ]
    assert (found.now, found.next_at, found.missing) == (T0, T0 + 1, [])
    assert await rig.is_untouched()


async def test_nothing_is_due_where_there_is_nothing(rig: Rig) -> None:
    assert await read_due(rig.engine, "q", []) == (T0, None, [], [])
    assert await rig.dump() == {}


async def test_what_must_be_there_and_is_not_is_told(rig: Rig) -> None:
    await plant(rig, None, "there")
    found = await read_due(rig.engine, "q", ["there", "gone", "lost"])
    assert found.missing == ["gone", "lost"]


async def test_one_look_sees_so_many_and_the_next_one_the_others(rig: Rig) -> None:
    names = [f"s{number:02d}" for number in range(MOST + 3)]
    for number, name in enumerate(names):
        await plant(rig, T0 - 1000 + number, name)
    first = await read_due(rig.engine, "q", [])
    assert [one.name for one in first.due] == names[:MOST]
    assert first.next_at == T0 - 1000 + MOST
    second = await read_due(rig.engine, "q", [], MOST)
    assert [one.name for one in second.due] == names[MOST:]
    assert second.next_at is None
