"""`group`: members are counted by letters, and callbacks are sent once."""

from __future__ import annotations

import pytest

from faena.engine.calls.flows import FlowCalls, Made
from faena.outcomes import Buried, Completed
from tests._support.rig import BOOM, KEEP_NONE, SECOND, T0, Rig

CALLBACK = {name: Made("q", 10, {}, "{}", f"q.g.{name}").pack() for name in ("complete", "success")}


@pytest.fixture
def mail(rig: Rig) -> FlowCalls:
    return FlowCalls(rig.engine)


async def read_all(rig: Rig, mail: FlowCalls) -> None:
    letters = await mail.messages("q", "q")
    await mail.receive("q", "q", letters)
    await mail.delivered("q", "q", letters[-1].id)


async def pending_sends(rig: Rig) -> list[str]:
    return [name for name, _ in (await rig.dump()).get("pending_sends", [])]


async def test_a_group_without_members_calls_back_when_it_is_sealed(
    rig: Rig, mail: FlowCalls
) -> None:
    await mail.open_group("q", "g", CALLBACK)
    assert await pending_sends(rig) == []
    assert await mail.seal_group("q", "g", 0) == "OK"
    assert await pending_sends(rig) == ["g:g:complete:q.g.complete", "g:g:success:q.g.success"]
    await mail.done("q", await pending_sends(rig))
    assert await mail.seal_group("q", "g", 0) == "OK"
    assert await mail.seal_group("q", "g", 2) == "0"
    await rig.remember()
    assert await mail.open_group("q", "g", {"complete": b"another"}) == "0"
    assert await rig.is_untouched()
    assert await pending_sends(rig) == []


async def test_members_that_end_together_write_one_letter(rig: Rig, mail: FlowCalls) -> None:
    await rig.declare(retain=KEEP_NONE)
    await mail.open_group("q", "g", {"complete": CALLBACK["complete"]})
    await rig.add("a", "b", "c", tells="g:q:g:")
    lease = await rig.claim(3)
    ends = [("a", lease, Completed(b"1")), ("b", lease, Completed()), ("c", lease, Buried(BOOM))]
    exchanged = await rig.turn(0, *ends)
    assert exchanged.has_outbox
    assert len(await mail.messages("q", "q")) == 2  # those completed, and the dead one
    await read_all(rig, mail)
    assert await pending_sends(rig) == []
    await mail.seal_group("q", "g", 3)
    assert await pending_sends(rig) == ["g:g:complete:q.g.complete"]
    group = await mail.group("q", "g")
    assert (group["completed"], group["dead"]) == (b"2", b"1")


async def test_a_group_that_nobody_opened_is_not_sealed(rig: Rig, mail: FlowCalls) -> None:
    assert await mail.seal_group("q", "nobody", 3) == "unknown"
    assert "group:nobody" not in await rig.dump()


async def test_a_group_that_has_ended_is_kept_for_a_week(rig: Rig, mail: FlowCalls) -> None:
    await mail.open_group("q", "g", {})
    assert await rig.engine.command("TTL", "q", "group:g") > 29 * 86400
    await mail.seal_group("q", "g", 0)
    assert 6 * 86400 < await rig.engine.command("TTL", "q", "group:g") <= 7 * 86400
    assert "groups" not in await rig.dump()
    assert 6 * 86400 < await rig.engine.command("TTL", "q", "groups_done") <= 7 * 86400


async def test_the_list_of_ended_groups_lets_go_of_old_ones_and_is_bounded(
    rig: Rig, mail: FlowCalls
) -> None:
    async def ended(name: str) -> None:
        await mail.open_group("q", name, {})
        await mail.seal_group("q", name, 0)

    await ended("old")
    rig.clock.go(8 * 86400)
    many = [part for number in range(10_000) for part in (T0 + 8 * 86400 * SECOND, f"g{number}")]
    await rig.engine.command("ZADD", "q", "groups_done", *many)
    await ended("last")
    assert await mail.groups("q", is_live=False, limit=1) == ["last"]
    assert await rig.engine.command("ZCARD", "q", "groups_done") == 10_000
    assert await rig.engine.command("ZSCORE", "q", "groups_done", "old") is None


async def test_callbacks_wait_for_the_last_member(rig: Rig, mail: FlowCalls) -> None:
    await mail.open_group("q", "g", CALLBACK)
    await rig.add("a", "b", "c", tells="g:q:g:")
    await mail.seal_group("q", "g", 3)
    lease = await rig.claim(3)
    await rig.turn(0, ("a", lease, Completed()), ("b", lease, Completed()))
    await read_all(rig, mail)
    assert await pending_sends(rig) == []
    assert "groups" in await rig.dump()
    await rig.turn(0, ("c", lease, Completed()))
    await read_all(rig, mail)
    assert await pending_sends(rig) == ["g:g:complete:q.g.complete", "g:g:success:q.g.success"]
