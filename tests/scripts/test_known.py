"""known.lua"""

from __future__ import annotations

from typing import Any

import pytest

from faena.engine.calls.transfer import Known
from faena.engine.envelope import seal
from faena.outcomes import Buried, Completed
from tests._support.rig import BOOM, KEEP_NONE, SECOND, Rig
from tests._support.transfer import Transfer

SPEC = seal(10, {"lane": "@a"}, b"{}")


async def known(transfer: Transfer, *wanted: tuple[str, str, str]) -> list[Known | None]:
    return await transfer.moving.known("q", "q/1", wanted)


async def test_a_job_is_known_by_its_id_in_any_state(rig: Rig, transfer: Transfer) -> None:
    await rig.run("done", Completed(), lane="@a")
    await rig.run("dead", Buried(BOOM), lane="@a")
    await rig.add("runs", lane="@a")
    await rig.claim()
    await rig.add("waits", lane="@a")
    await rig.remember()
    answers = await known(transfer, *((job, "", "") for job in ("done", "dead", "runs", "waits")))
    assert answers == [
        Known("done", "completed", SPEC),
        Known("dead", "dead", SPEC),
        Known("runs", "running", SPEC),
        Known("waits", "ready", SPEC),
    ]
    assert await known(transfer, ("new", "", ""), ("waits", "", "")) == [None, answers[3]]
    assert await rig.is_untouched()


@pytest.mark.parametrize("mode", ["live", "waiting", "debounce", "last"])
async def test_the_holder_of_a_claim_is_known_until_it_gives_it_up(
    rig: Rig, transfer: Transfer, mode: str
) -> None:
    await rig.add("a", lane="@a", unique="u", mode=mode)
    assert await known(transfer, ("b", mode, "u")) == [Known("a", "ready", b"")]
    assert await known(transfer, ("b", mode, "other")) == [None]
    assert await known(transfer, ("b", "throttle", "u")) == [None]
    await rig.engine.cancel("q", ["a"])
    assert await known(transfer, ("b", mode, "u")) == [None]


async def test_a_throttle_is_known_for_its_time_also_when_its_job_is_gone(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.declare(retain=KEEP_NONE)
    throttle: dict[str, Any] = {"unique": "u", "mode": "throttle", "ttl": 60 * SECOND}
    await rig.run("a", Completed(), lane="@a", **throttle)
    rig.clock.go(59)
    assert await known(transfer, ("b", "throttle", "u")) == [Known("a", "removed", b"")]
    rig.clock.go(1)
    assert await known(transfer, ("b", "throttle", "u")) == [None]


async def test_jobs_under_way_are_known_with_their_claims(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a", unique="u", mode="live")
    await rig.add("t", lane="@a", unique="u", mode="throttle", ttl=60 * SECOND)
    await transfer.hand_over("@a")
    batch = await transfer.take_out("a", "t")
    assert await rig.states() == {}
    spec = seal(10, {"lane": "@a", "unique": "u", "mode": "live"}, b"{}")
    wanted = [("a", "", ""), ("b", "live", "u"), ("b", "throttle", "u"), ("b", "live", "v")]
    answers = [Known("a", "ready", spec), Known("a", "ready", b""), Known("t", "ready", b""), None]
    assert await known(transfer, *wanted) == answers
    rig.clock.go(60)
    assert (await known(transfer, wanted[2]))[0] is None
    assert await transfer.moving.known("q", "q/2", wanted) == [None] * 4  # they go elsewhere
    await transfer.take_in(batch)
    await transfer.take_out()
    assert await known(transfer, *wanted) == [None] * 4
