"""exchange.lua: jobs whose worker was lost."""

from __future__ import annotations

import msgspec

from faena.outcomes import Completed, ErrorRecord, Retried
from tests._support.rig import BOOM, KEEP_NONE, LEASE, SECOND, T0, Rig, score


async def lose(rig: Rig, worker: str = "worker") -> None:
    """Claim the first job and let its lease run out, unnoticed so far."""
    await rig.claim(worker=worker)
    rig.clock.go(LEASE / SECOND)


async def test_an_expired_lease_puts_the_job_back_in_its_place_without_an_attempt(rig: Rig) -> None:
    await rig.add("a", "b")
    await lose(rig, worker="dead/worker")
    await rig.remember()
    await rig.turn(worker="other")
    changed = await rig.changed()
    clock = changed.pop("clock")
    assert clock["prune_at"] == T0 + LEASE + SECOND
    (error,) = (changed["info:a"].pop("error:1"),)
    assert changed == {
        "info:a": {"errors": "1"},
        "leases": None,
        "marks": {"a": {"l": 1, "i": 1}},
        "ready": [("a", score(T0 + 1)), ("b", score(T0 + 2))],
        "running": None,
    }
    assert msgspec.json.decode(error, type=ErrorRecord) == ErrorRecord(
        name="WorkerLost",
        message="worker dead/worker died or froze with the job, delivery 1",
        code="WORKER_LOST",
        worker="dead/worker",
        at=T0 + LEASE,
        started_at=T0,
    )
    assert (await rig.events())[-1] == {"worker": "other", "rescued": "a"}


async def test_a_lease_holds_up_to_its_last_microsecond(rig: Rig) -> None:
    await rig.add("a")
    await lose(rig)
    rig.clock.go(-0.000001)
    await rig.remember()
    assert (await rig.turn(1)).claimed == []
    assert "running" not in await rig.changed()


async def test_a_late_settlement_counts_while_nobody_has_rescued_the_job(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    rig.clock.go(100)
    assert (await rig.turn(0, ("a", lease, Completed()))).lost == []
    assert await rig.states() == {"a": "completed"}


async def test_a_job_that_cost_max_deliveries_workers_is_dead_with_the_evidence(rig: Rig) -> None:
    await rig.declare(max_deliveries=2)
    await rig.add("a")
    await lose(rig, worker="first")
    await lose(rig, worker="second")
    await rig.turn()
    taken = await rig.dump()
    assert taken["dead"] == [("a", T0 + 2 * LEASE)]
    assert taken["marks"] == {"a": {"l": 2, "i": 1}}
    errors = [msgspec.json.decode(taken["info:a"][f"error:{n}"])["worker"] for n in (1, 2)]
    assert errors == ["first", "second"]
    assert taken["specs"] == {"a": b"010\n{}"}


async def test_losses_and_attempts_are_counted_apart(rig: Rig) -> None:
    await rig.run("a", Retried(0, BOOM))
    await lose(rig)
    (claim,) = (await rig.turn(1)).claimed
    assert (claim.attempts, claim.losses) == (1, 1)


async def test_a_job_asked_to_stop_is_cancelled_when_its_worker_is_lost(rig: Rig) -> None:
    await rig.add("a")
    await rig.claim()
    await rig.engine.cancel("q", ["a"])
    rig.clock.go(LEASE / SECOND)
    await rig.turn()
    assert await rig.states() == {"a": "cancelled"}


async def test_an_odd_worker_name_is_still_readable_evidence(rig: Rig) -> None:
    await rig.add("a")
    await lose(rig, worker='"\\{é}')
    await rig.turn()
    record = msgspec.json.decode((await rig.dump())["info:a"]["error:1"], type=ErrorRecord)
    assert record.worker == '"\\{é}'


async def test_a_dead_job_that_nobody_keeps_leaves_nothing(rig: Rig) -> None:
    await rig.declare(max_deliveries=1, retain=KEEP_NONE)
    await rig.add("a")
    await lose(rig)
    await rig.turn()
    assert {"dead", "specs", "marks", "info:a", "leases", "running"}.isdisjoint(await rig.dump())


async def test_the_rescued_are_claimed_by_the_same_call(rig: Rig) -> None:
    await rig.add("a")
    await lose(rig)
    assert [claim.id for claim in (await rig.turn(1)).claimed] == ["a"]


async def test_at_most_a_slice_is_rescued_in_one_call(rig: Rig) -> None:
    await rig.add(*(f"job{number:03d}" for number in range(150)))
    await rig.claim(150)
    rig.clock.go(LEASE / SECOND)
    await rig.turn()
    states = list((await rig.states()).values())
    assert (states.count("ready"), states.count("running")) == (25, 125)


async def test_only_leases_that_have_run_out_are_rescued(rig: Rig) -> None:
    await rig.add("a", "b", "c")
    await rig.claim(worker="lost")
    rig.clock.go(LEASE / SECOND / 2)
    await rig.claim(worker="alive")
    rig.clock.go(LEASE / SECOND / 2)
    await rig.turn()
    assert await rig.states() == {"a": "ready", "b": "running", "c": "ready"}
    assert set((await rig.dump())["leases"]) == {"b"}
