"""What the history has of a job that ends, by whatever way it does."""

from __future__ import annotations

import msgspec
import pytest

from faena.engine.calls.deadletter import Decision, DeskCalls
from faena.engine.calls.history import Finishing, Gap, HistoryCalls
from faena.outcomes import Buried, Cancelled, Completed, ErrorRecord, Expired, Retried, Snoozed
from tests._support.past import ROOM, ends, told
from tests._support.rig import BOOM, KEEP_NONE, LEASE, SECOND, T0, Rig
from tests._support.transfer import Transfer

BODY = b'{"task":"send","tenant":"acme","key":"k7","payload":{"to":"ana"}}'


async def test_a_queue_without_a_history_has_none(rig: Rig) -> None:
    await rig.run("a", Completed())
    assert not {"history", "history_stats"} & {*(await rig.dump())}


async def test_all_that_is_known_of_a_completed_job(rig: Rig, past: HistoryCalls) -> None:
    await rig.add("a", body=BODY, priority=5)
    rig.clock.go(2)
    lease = await rig.claim(worker="w1")
    rig.clock.go(3)
    await rig.turn(0, ("a", lease, Completed(b"7")))
    assert await told(past) == [
        Finishing(
            id="a",
            queue="q",
            state="completed",
            finished_at=T0 + 5 * SECOND,
            task="send",
            tenant="acme",
            key="k7",
            priority=5,
            attempts=1,
            losses=0,
            enqueued_at=T0 + 1,
            started_at=T0 + 2 * SECOND,
            worker="w1",
            error=None,
            code=None,
            message=None,
            origin="a",
            retry_of=None,
            flow=None,
            group=None,
            payload=None,
            result=None,
        )
    ]


async def test_jobs_that_end_together_share_an_entry(rig: Rig, past: HistoryCalls) -> None:
    await rig.add("a", "b", "c")
    lease = await rig.claim(3)
    await rig.turn(0, *((job, lease, Completed()) for job in "abc"))
    (entry,) = await past.read("q")
    assert [one.id for one in entry.finishings] == ["a", "b", "c"]


async def test_payload_and_result_are_there_where_they_are_asked_for(
    rig: Rig, past: HistoryCalls
) -> None:
    await rig.edit(**{"history:payloads": 1})
    await rig.run("a", Completed(b'"well"'), body=BODY)
    (one,) = await told(past)
    assert (one.payload, one.result) == (b'{"to":"ana"}', b'"well"')


async def test_what_is_too_large_is_left_out(rig: Rig, past: HistoryCalls) -> None:
    await rig.edit(**{"history:payloads": 1})
    body = b'{"task":"send","payload":"%b"}' % (b"x" * 70_000)
    await rig.run("a", Completed(b'"%b"' % (b"y" * 70_000)), body=body)
    (one,) = await told(past)
    assert (one.task, one.payload, one.result) == ("send", None, None)


async def test_jobs_that_are_not_kept_are_told_as_well(rig: Rig, past: HistoryCalls) -> None:
    rig.declare_as(retain=KEEP_NONE)
    await rig.engine.declare("q")
    for job, outcome in (("a", Completed()), ("b", Buried(BOOM)), ("c", Cancelled(BOOM))):
        await rig.run(job, outcome, body=BODY)
    assert await ends(past) == [("a", "completed"), ("b", "dead"), ("c", "cancelled")]
    assert await rig.states() == {}
    assert {one.tenant for one in await told(past)} == {"acme"}


async def test_a_death_has_its_last_error(rig: Rig, past: HistoryCalls) -> None:
    await rig.run("a", Retried(0, BOOM))
    lease = await rig.claim()
    last = ErrorRecord(name="Worse", message='"so" it\n\x00 broke', code="E7")
    await rig.turn(0, ("a", lease, Buried(last)))
    (one,) = await told(past)
    assert (one.state, one.attempts) == ("dead", 2)
    assert (one.error, one.code, one.message) == ("Worse", "E7", '"so" it\n\x00 broke')
    assert one.enqueued_at == T0 + 1


async def test_an_error_without_end_is_cut(rig: Rig, past: HistoryCalls) -> None:
    await rig.run("a", Buried(ErrorRecord(name="Boom", message="é" * 100_000)))
    (one,) = await told(past)
    assert one.error == "Boom"
    assert one.message is not None
    assert one.message.startswith("éé")
    assert len(one.message) < 70_000


async def test_a_rescue_that_buries_tells_the_worker(rig: Rig, past: HistoryCalls) -> None:
    await rig.edit(max_deliveries=1)
    await rig.add("a")
    await rig.claim(worker="frozen")
    rig.clock.now += LEASE + 1
    await rig.turn(0)
    (one,) = await told(past)
    assert (one.state, one.worker, one.code) == ("dead", "frozen", "WORKER_LOST")
    assert (one.losses, one.started_at) == (1, T0)


async def test_waiting_jobs_that_are_cancelled_or_removed(rig: Rig, past: HistoryCalls) -> None:
    await rig.add("a", "b", "c")
    await rig.add("d", delay=SECOND)
    rig.clock.go(1)
    await rig.engine.cancel("q", ["a", "a"])
    await rig.engine.remove("q", ["b", "b"])
    await rig.engine.clean("q", "ready", 0, 10)
    await rig.engine.clean("q", "delayed", 0, 10)
    assert await ends(past) == [("a", "cancelled"), *((job, "removed") for job in "bcd")]
    first, *_ = await told(past)
    assert (first.enqueued_at, first.started_at, first.worker) == (T0 + 1, None, None)


async def test_what_is_removed_after_its_end_is_told_once(rig: Rig, past: HistoryCalls) -> None:
    await rig.run("a", Completed())
    await rig.run("b", Buried(BOOM))
    await rig.engine.remove("q", ["a"])
    await rig.engine.clean("q", "dead", 0, 10)
    assert await ends(past) == [("a", "completed"), ("b", "dead")]


async def test_jobs_that_expire(rig: Rig, past: HistoryCalls) -> None:
    await rig.add("a", expires=T0 + SECOND)
    await rig.add("b", expires=T0 + SECOND)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Retried(2 * SECOND, BOOM)))
    rig.clock.go(2)
    await rig.turn(5)
    late = ErrorRecord(name="Expired", message="too late", code="EXPIRED")
    await rig.run("c", Expired(late))
    assert await ends(past) == [("a", "expired"), ("b", "expired"), ("c", "expired")]


async def test_a_job_that_is_replaced(rig: Rig, past: HistoryCalls) -> None:
    await rig.add("a", unique="u", mode="debounce", ttl=SECOND, delay=SECOND)
    await rig.add("b", unique="u", mode="debounce", ttl=SECOND, delay=SECOND)
    assert await ends(past) == [("a", "replaced")]


async def test_a_rerun_ends_again(rig: Rig, past: HistoryCalls) -> None:
    await rig.run("a", Buried(BOOM))
    rig.clock.go(1)
    await rig.engine.rerun("q", ["a"])
    rig.clock.go(1)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    assert await ends(past) == [("a", "dead"), ("a", "completed")]
    again = (await told(past))[1]
    assert (again.enqueued_at, again.attempts, again.error) == (T0 + SECOND, 1, None)


async def test_a_retry_as_new_has_its_line(rig: Rig, past: HistoryCalls) -> None:
    await rig.run("a", Buried(BOOM))
    desk = DeskCalls(rig.engine)
    await desk.retry_as_new("q", Decision("one", "", "ana"), 10, [("a", "b")])
    lease = await rig.claim()
    await rig.turn(0, ("b", lease, Completed()))
    *_, last = await told(past)
    assert (last.id, last.origin, last.retry_of) == ("b", "a", "a")


async def test_what_the_desk_decides(rig: Rig, past: HistoryCalls) -> None:
    await rig.run("a", Buried(BOOM))
    await rig.run("b", Buried(BOOM))
    rig.clock.go(1)
    desk = DeskCalls(rig.engine)
    for job, status in (("a", "discarded"), ("b", "resolved"), ("b", "discarded")):
        await desk.dismiss("q", status, Decision("one", "", "ana"), [job])
    assert (await ends(past))[2:] == [("a", "discarded"), ("b", "resolved")]


async def test_nodes_and_members_name_their_flow_or_group(rig: Rig, past: HistoryCalls) -> None:
    await rig.run("a", Completed(), tells="f:orders:f1:3")
    await rig.run("b", Completed(), tells="g:orders:g1:")
    first, second = await told(past)
    assert (first.flow, first.group) == ("orders/f1", None)
    assert (second.flow, second.group) == (None, "orders/g1")
    for name in ("recipients", "messages:orders", "message_streams"):
        await rig.engine.command("DEL", "q", name)


async def test_what_does_not_end_is_not_told(rig: Rig, past: HistoryCalls) -> None:
    await rig.run("a", Retried(SECOND, BOOM))
    await rig.run("b", Snoozed(SECOND))
    assert await told(past) == []


async def test_a_settlement_that_comes_twice_is_told_once(rig: Rig, past: HistoryCalls) -> None:
    await rig.add("a")
    lease = await rig.claim()
    for call in ("call9001", "call9001", "call9002"):
        await rig.turn(0, ("a", lease, Completed()), call=call)
    assert await ends(past) == [("a", "completed")]


# -- room --------------------------------------------------------------------------------------


async def test_without_room_jobs_are_counted_and_then_told_as_a_gap(
    rig: Rig, past: HistoryCalls
) -> None:
    await rig.run("a", Completed())
    backlog = await past.backlog("q")
    await rig.edit(**{"history:room": backlog.bytes + 10})
    rig.clock.go(1)
    await rig.run("b", Completed())
    rig.clock.go(1)
    await rig.run("c", Completed())
    assert await ends(past) == [("a", "completed")]
    assert (await past.backlog("q")).lost == 2
    (entry,) = await past.read("q")
    rig.clock.go(1)
    assert await past.done("q", [entry.id]) == 1
    (gap,) = await past.read("q")
    assert gap.gap == Gap(2, T0 + SECOND, T0 + 3 * SECOND)
    assert await past.done("q", [gap.id]) == 0
    assert (await past.backlog("q"))[:3] == (0, 0, 0)


async def test_a_gap_stands_before_what_found_room_again(rig: Rig, past: HistoryCalls) -> None:
    await rig.edit(**{"history:room": 1})
    await rig.run("a", Completed())
    await rig.edit(**{"history:room": ROOM})
    await rig.run("b", Completed())
    first, second = await past.read("q")
    assert first.gap == Gap(1, T0, T0)
    assert [one.id for one in second.finishings] == ["b"]


async def test_each_gap_begins_with_its_own_first_job(rig: Rig, past: HistoryCalls) -> None:
    for job in ("a", "c"):
        await rig.edit(**{"history:room": 1})
        await rig.run(job, Completed())
        rig.clock.go(1)
        await rig.edit(**{"history:room": ROOM})
        await rig.run(f"after-{job}", Completed())
        rig.clock.go(1)
    gaps = [one.gap for one in await past.read("q") if one.gap]
    assert gaps == [Gap(1, T0, T0 + SECOND), Gap(1, T0 + 2 * SECOND, T0 + 3 * SECOND)]


async def test_a_large_batch_is_cut_into_entries(rig: Rig, past: HistoryCalls) -> None:
    ids = [f"job{i:03d}" for i in range(100)]
    await rig.add(*ids, body=b'{"task":"%b"}' % (b"t" * 4000))
    lease = await rig.claim(100)
    await rig.turn(0, *((job, lease, Completed()) for job in ids))
    entries = await past.read("q")
    assert len(entries) == 2
    assert [job for job, _ in await ends(past)] == ids


# -- queues that come and go -------------------------------------------------------------------


async def test_an_obliterated_queue_leaves_its_history_for_a_week(
    rig: Rig, past: HistoryCalls
) -> None:
    await rig.run("a", Completed())
    await rig.add("b", "c")
    await rig.claim()
    await rig.obliterate()
    assert sorted(await ends(past)) == [("a", "completed"), ("b", "removed"), ("c", "removed")]
    kept = {"history", "history_stats"}
    assert kept <= (await rig.dump()).mortal
    entries = await past.read("q")
    await rig.declare()
    assert not kept & (await rig.dump()).mortal
    await past.done("q", [one.id for one in entries])
    await rig.obliterate()
    assert not kept & {*(await rig.dump())}


async def test_a_history_that_was_spoilt_keeps_no_job_from_its_end(
    rig: Rig, past: HistoryCalls
) -> None:
    await rig.engine.command("SET", "q", "history", "x")
    await rig.engine.command("SET", "q", "history_stats", "x")
    await rig.run("a", Completed())
    assert await rig.states() == {"a": "completed"}
    assert await past.done("q", ["1-1"]) == 0
    await rig.engine.command("DEL", "q", "history")
    await rig.run("b", Completed())
    first, second = await past.read("q")
    assert first.gap == Gap(1, T0, T0)
    assert [one.id for one in second.finishings] == ["b"]


@pytest.mark.parametrize(
    "packed",
    [b"", b"\xff", b"\x91\x01", msgspec.msgpack.encode([1, T0, "completed", 1, 5])],
    ids=["nothing", "no msgpack", "too short", "no jobs"],
)
async def test_an_entry_that_cannot_be_read_is_a_gap(
    rig: Rig, past: HistoryCalls, packed: bytes
) -> None:
    await rig.engine.command("XADD", "q", "history", "5-1", "n", 3, "is", packed)
    (entry,) = await past.read("q")
    assert entry.gap == Gap(3, 5000, 5000)


@pytest.mark.parametrize("body", [b"{}", b"\xff\xfe", b"", b'{"payload":1,"task":"x"}', b"[1]"])
async def test_bodies_of_other_programs_have_no_task(
    rig: Rig, past: HistoryCalls, body: bytes
) -> None:
    await rig.run("a", Completed(), body=body)
    (one,) = await told(past)
    assert (one.id, one.task, one.tenant, one.payload) == ("a", "", None, None)


async def test_a_job_that_moves_after_its_end_is_told_where_it_ended(
    rig: Rig, past: HistoryCalls, transfer: Transfer
) -> None:
    await transfer.target.declare()
    await transfer.target.edit(**{"history:room": ROOM})
    await rig.run("a", Completed(), lane="@acme")
    await rig.run("b", Buried(BOOM), lane="@acme")
    assert await transfer.carry("a", "b") == 2
    assert await ends(past) == [("a", "completed"), ("b", "dead")]
    assert await ends(past, "q/1") == []
    await transfer.target.engine.remove("q/1", ["a", "b"])
    assert await ends(past, "q/1") == []
