"""transit.lua"""

from __future__ import annotations

import pytest

from faena.outcomes import Buried, Completed
from faena.sharding.consistent_read import travelling
from tests._support.rig import BOOM, T0, Rig
from tests._support.transfer import Transfer


@pytest.fixture
async def leaving(rig: Rig, transfer: Transfer) -> Transfer:
    """Three jobs of a lane that leaves: one is ready, one completed, one dead."""
    await transfer.declare(fair=True)
    await rig.run("done", Completed(b'"well"'), lane="@a")
    await rig.run("dead", Buried(BOOM), lane="@a")
    await rig.add("waits", lane="@a")
    await transfer.hand_over("@a")
    return transfer


async def test_jobs_on_their_way_are_told_until_they_are_known_to_have_come(
    rig: Rig, leaving: Transfer
) -> None:
    assert await travelling(rig.engine, "q") == []
    batch = await leaving.take_out("waits", "done", "dead")
    await rig.remember()
    waits, done, dead = await travelling(rig.engine, "q", ["done"])
    assert (waits.position.id, waits.state, waits.look) == ("waits", "ready", None)
    assert (dead.state, dead.record[:1] != b"") == ("dead", True)
    assert done.look is not None
    state, at, spec, mark, lease, result, info, enqueued = done.look
    assert (state, at, spec) == ("completed", str(T0), b"010 lane=@a\n{}")
    assert (mark, lease, result, info, enqueued) == (b"", b"", b'"well"', {}, None)
    assert await rig.is_untouched()
    await leaving.take_in(batch)
    assert len(await travelling(rig.engine, "q")) == 3
    await leaving.take_out()
    assert await travelling(rig.engine, "q") == []
