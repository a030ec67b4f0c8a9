"""events.lua"""

from __future__ import annotations

from tests._support.rig import Rig


async def test_entries_behind_a_place_come_with_how_many_there_were(rig: Rig) -> None:
    assert await rig.engine.ask("events", "q", most=0) == [0, 0, b"0-0", b"0-0", 0, []]
    for job in ("a", "b", "c"):
        await rig.add(job)
    await rig.remember()
    reply = await rig.engine.ask("events", "q", after="0-0", most=2)
    added, kept, first, last, there, entries = reply
    assert (added, kept, first, there, len(entries)) == (3, 3, entries[0][0], 0, 2)
    assert entries[0][1][4:] == [b"enqueued", b"a"]
    *_, there, rest = await rig.engine.ask("events", "q", after=entries[1][0], most=10)
    assert (there, [entry for entry, _ in rest]) == (1, [last])
    assert (await rig.engine.ask("events", "q", most=9))[4:] == [0, []]
    assert await rig.is_untouched()


async def test_what_was_trimmed_counts_as_added(rig: Rig) -> None:
    for job in ("a", "b", "c"):
        await rig.add(job)
    await rig.engine.command("XTRIM", "q", "events", "MAXLEN", 1)
    added, kept, first, last, _, entries = await rig.engine.ask("events", "q", after="0-0", most=9)
    assert (added, kept, first, len(entries)) == (3, 1, last, 1)
