"""renew.lua"""

from __future__ import annotations

from faena.outcomes import Completed
from tests._support.rig import LEASE, SECOND, T0, Rig


async def test_a_lease_is_extended_from_now(rig: Rig) -> None:
    await rig.add("a", "b")
    lease = await rig.claim(2)
    rig.clock.go(10)
    await rig.remember()
    assert await rig.engine.renew("q", [("a", lease)]) == ([], [])
    assert await rig.changed() == {
        "running": [("b", T0 + LEASE), ("a", T0 + 10 * SECOND + LEASE)],
    }


async def test_a_second_renewal_at_the_same_instant_changes_nothing(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.engine.renew("q", [("a", lease)])
    await rig.remember()
    assert await rig.engine.renew("q", [("a", lease)]) == ([], [])
    assert await rig.is_untouched()


async def test_what_is_no_longer_held_is_reported_and_not_extended(rig: Rig) -> None:
    await rig.add("settled", "stolen")
    old = await rig.claim(2)
    await rig.turn(0, ("settled", old, Completed()))
    rig.clock.go(LEASE / SECOND)
    await rig.claim(worker="other")
    await rig.remember()
    pairs = [("settled", old), ("stolen", old), ("stolen", ""), ("never", old)]
    lost, stopping = await rig.engine.renew("q", pairs)
    assert (lost, stopping) == (["settled", "stolen", "stolen", "never"], [])
    assert await rig.is_untouched()


async def test_jobs_asked_to_stop_are_named_and_still_renewed(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.engine.cancel("q", ["a"])
    rig.clock.go(5)
    assert await rig.engine.renew("q", [("a", lease)]) == ([], ["a"])
    assert (await rig.dump())["running"] == [("a", T0 + 5 * SECOND + LEASE)]


async def test_nothing_to_renew_is_no_error(rig: Rig) -> None:
    assert await rig.engine.renew("q", []) == ([], [])


async def test_a_renewed_job_is_not_rescued(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    rig.clock.go(29)
    await rig.engine.renew("q", [("a", lease)])
    rig.clock.go(29)
    await rig.turn()
    assert await rig.states() == {"a": "running"}


async def test_a_queue_without_settings_renews_nothing(rig: Rig) -> None:
    assert await rig.engine.ask("renew", "q", "a", "l", least_us=0) == [b"UNCONFIGURED"]
    assert await rig.dump() == {}


async def test_a_lease_edited_to_be_short_still_lasts_what_its_worker_needs(rig: Rig) -> None:
    await rig.add("a", "b")
    lease = await rig.claim(2)
    await rig.edit(lease_us=SECOND)
    await rig.engine.renew("q", [("a", lease)], least_lease_us=3 * SECOND)
    await rig.engine.renew("q", [("b", lease)])
    assert (await rig.dump())["running"] == [("b", T0 + SECOND), ("a", T0 + 3 * SECOND)]


async def test_any_number_of_leases_is_renewed(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    pairs = [("a", lease), *((f"never{number}", "x") for number in range(4500))]
    rig.clock.go(5)
    lost, _ = await rig.engine.renew("q", pairs)
    assert lost == [job for job, _ in pairs[1:]]
    assert (await rig.dump())["running"] == [("a", T0 + 5 * SECOND + LEASE)]
