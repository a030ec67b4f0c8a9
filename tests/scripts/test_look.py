"""look.lua"""

from __future__ import annotations

import msgspec

from faena.engine.scripts import Look
from faena.outcomes import Buried, Completed
from tests._support.rig import BOOM, BOOM_JSON, LEASE, T0, Rig


async def test_an_ordinary_job_is_its_state_its_score_and_its_spec(rig: Rig) -> None:
    await rig.add("a")
    score = str(T0 + 1 + 10 * 300_000_000)
    expected = Look("ready", score, b"010\n{}", b"", b"", b"", {}, T0 + 1)
    assert await rig.engine.look("q", ["a"]) == [expected]


async def test_a_running_job_comes_with_its_lease(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    (look,) = await rig.engine.look("q", ["a"])
    assert look is not None
    assert (look.state, int(look.score)) == ("running", T0 + LEASE)
    assert look.lease.split()[:3] == [lease.encode(), str(T0).encode(), b"worker"]


async def test_a_finished_job_comes_with_its_result_or_its_errors(rig: Rig) -> None:
    await rig.run("good", Completed(b"1"))
    await rig.run("bad", Buried(BOOM))
    good, bad = await rig.engine.look("q", ["good", "bad"])
    assert good is not None
    assert bad is not None
    assert (good.state, good.result, good.info) == ("completed", b"1", {})
    assert (bad.state, bad.result) == ("dead", b"")
    assert msgspec.msgpack.decode(bad.mark)["a"] == 1
    assert bad.info == {"errors": b"1", "error:1": BOOM_JSON.encode()}


async def test_an_unknown_job_is_none(rig: Rig) -> None:
    assert await rig.engine.look("q", ["never"]) == [None]


async def test_looking_changes_nothing(rig: Rig) -> None:
    await rig.run("a", Completed(b"1"))
    await rig.remember()
    await rig.engine.look("q", ["a", "b"])
    await rig.engine.page("q", "completed", 10, after=("", ""), is_reverse=False)
    await rig.engine.overview("q")
    assert await rig.is_untouched()
