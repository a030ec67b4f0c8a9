"""history_done.lua"""

from __future__ import annotations

import pytest

from faena.engine.calls.history import HistoryCalls
from faena.outcomes import Completed
from tests._support.past import ends
from tests._support.rig import Rig


async def test_entries_are_struck_off_by_their_ids_and_twice_is_harmless(
    rig: Rig, past: HistoryCalls
) -> None:
    for job in "abc":
        await rig.run(job, Completed())
    first, second, third = await past.read("q")
    assert await past.done("q", [first.id, third.id]) == 1
    assert await past.done("q", [first.id, third.id, "5-5"]) == 1
    assert await ends(past) == [("b", "completed")]
    assert (await past.backlog("q")).bytes > 0
    assert await past.done("q", [second.id]) == 0
    assert (await past.backlog("q"))[:3] == (0, 0, 0)


@pytest.mark.parametrize("entry", ["", "-", "x-1", "1", "9" * 40 + "-1"])
async def test_what_is_no_entry_is_refused(rig: Rig, past: HistoryCalls, entry: str) -> None:
    await rig.run("a", Completed())
    with pytest.raises(Exception, match="BAD_ARGUMENT an entry must be right"):
        await past.done("q", [entry])
    assert await ends(past) == [("a", "completed")]


async def test_room_comes_back_while_others_still_wait(rig: Rig, past: HistoryCalls) -> None:
    for job in "abc":
        await rig.run(job, Completed())
    first, *_ = await past.read("q")
    before = (await past.backlog("q")).bytes
    await past.done("q", [first.id])
    assert (await past.backlog("q")).bytes == before * 2 // 3, "all are of one length"
