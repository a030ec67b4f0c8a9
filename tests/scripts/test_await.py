"""await.lua, and the message that ends the wait."""

from __future__ import annotations

from faena.engine.keys import channel, read_message
from faena.outcomes import Completed, Retried
from tests._support.eventually import eventually
from tests._support.rig import BOOM, KEEP_NONE, SECOND, Rig


async def test_a_live_job_is_awaited_and_a_second_request_changes_nothing(rig: Rig) -> None:
    await rig.add("a")
    await rig.remember()
    assert await rig.engine.await_job("q", "a") == "ready"
    assert await rig.changed() == {"waiters": {"a": "1"}}
    await rig.remember()
    assert await rig.engine.await_job("q", "a") == "ready"
    assert await rig.is_untouched()


async def test_a_finished_or_unknown_job_is_answered_at_once(rig: Rig) -> None:
    await rig.run("a", Completed())
    await rig.remember()
    assert await rig.engine.await_job("q", "a") == "completed"
    assert await rig.engine.await_job("q", "never") == "unknown"
    assert await rig.is_untouched()


async def test_every_way_to_finish_ends_the_wait_once(rig: Rig) -> None:
    await rig.declare(retain=KEEP_NONE)
    heard: list[str] = []
    listening = await rig.engine.wire.listen(
        {channel(rig.engine.namespace, "done"): lambda said: heard.append(read_message(said)[1])}
    )
    await rig.add("completed", "retried")
    lease = await rig.claim(2)
    await rig.add("cancelled", "cleaned")
    await rig.add("replaced", unique="u", mode="debounce", delay=SECOND)
    for job in ("completed", "retried", "cancelled", "cleaned", "replaced"):
        await rig.engine.await_job("q", job)
    endings = [("completed", lease, Completed()), ("retried", lease, Retried(SECOND, BOOM))]
    await rig.turn(0, *endings)
    await rig.engine.cancel("q", ["cancelled"])
    await rig.engine.clean("q", "ready", 0, 10)
    await rig.add("newer", unique="u", mode="debounce", delay=SECOND)
    await eventually(lambda: len(heard) >= 4)
    assert heard == ["completed", "cancelled", "cleaned", "replaced"]
    assert (await rig.dump())["waiters"] == {"retried": "1"}
    await listening.close()
