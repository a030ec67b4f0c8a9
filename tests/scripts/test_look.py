"""look.lua"""

from __future__ import annotations

import msgspec

from faena.outcomes import Buried, Completed
from tests._support.rig import BOOM, BOOM_JSON, LEASE, T0, Rig


async def test_an_ordinary_job_is_its_state_its_score_and_its_spec(rig: Rig) -> None:
    await rig.add("a")
    ((state, score, spec, *rest),) = await rig.engine.look("q", ["a"])
    assert (state, float(score), spec) == (b"ready", T0 + 1 + 10 * 300_000_000, b"010\n{}")
    assert rest == [b"", b"", b"", [], str(T0 + 1).encode()]


async def test_a_running_job_comes_with_its_lease(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    ((state, score, _, _, record, *_),) = await rig.engine.look("q", ["a"])
    assert (state, int(score)) == (b"running", T0 + LEASE)
    assert record.split()[:3] == [lease.encode(), str(T0).encode(), b"worker"]


async def test_a_finished_job_comes_with_its_result_or_its_errors(rig: Rig) -> None:
    await rig.run("good", Completed(b"1"))
    await rig.run("bad", Buried(BOOM))
    good, bad = await rig.engine.look("q", ["good", "bad"])
    assert (good[0], good[5], good[6]) == (b"completed", b"1", [])
    assert (bad[0], bad[5]) == (b"dead", b"")
    assert msgspec.msgpack.decode(bad[3])["a"] == 1
    assert bad[6] == [b"errors", b"1", b"error:1", BOOM_JSON.encode()]


async def test_an_unknown_job_is_empty(rig: Rig) -> None:
    assert await rig.engine.look("q", ["never"]) == [[]]


async def test_looking_changes_nothing(rig: Rig) -> None:
    await rig.run("a", Completed(b"1"))
    await rig.remember()
    await rig.engine.look("q", ["a", "b"])
    await rig.engine.page("q", "completed", 10, after=("", ""), is_reverse=False)
    await rig.engine.overview("q")
    assert await rig.is_untouched()
