"""Failed tries are counted for a while that begins with the first."""

from __future__ import annotations

from faena.engine.calls.access import SHARD, AccessCalls
from tests._support.rig import Rig

LASTING_MS = 60_000


async def test_tries_are_counted_by_name(rig: Rig) -> None:
    calls = AccessCalls(rig.engine)
    assert [await calls.count_try("ana", LASTING_MS) for _ in range(3)] == [1, 2, 3]
    assert await calls.count_try("leo", LASTING_MS) == 1
    assert (await calls.tries("ana"), await calls.tries("eva")) == (3, 0)
    await calls.forget_tries("ana")
    assert await calls.tries("ana") == 0


async def test_further_tries_do_not_make_it_longer(rig: Rig) -> None:
    calls = AccessCalls(rig.engine)
    await calls.count_try("ana", LASTING_MS)
    await rig.engine.command("PEXPIRE", SHARD, "tries:ana", 1_000)
    await calls.count_try("ana", LASTING_MS)
    assert 0 < await rig.engine.command("PTTL", SHARD, "tries:ana") <= 1_000
