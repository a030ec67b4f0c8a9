"""arrive.lua and arrivals_stream.lua: jobs that producers leave, and who may leave them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from faena.engine import Address, Engine, Wire
from faena.engine.calls.arrivals import _PLAIN
from faena.engine.calls.transfer import TransferCalls
from faena.engine.scripts import CREATED
from faena.options import Backpressure, Retain
from faena.outcomes import Completed
from tests._support.rig import SECOND, Rig
from tests._support.valkey import Server

CALLER = "0123456789ab1"


def call_of(turn: int) -> str:
    return f"0123456789ab{turn:x}"


async def leave(rig: Rig, *ids: str, line: str = "010", turn: int = 1) -> None:
    """Append jobs as a producer does, one call each."""
    for number, job in enumerate(ids):
        fields = job, f"{line}\n{{}}", CALLER, call_of(turn + number)
        await rig.engine.command("XADD", rig.queue, "arrivals", "*", *fields)


async def is_open(rig: Rig) -> bool:
    return bool(await rig.engine.command("EXISTS", rig.queue, "arrivals"))


async def arrive(rig: Rig) -> Any:
    return await rig.engine.ask("arrive", rig.queue)


async def claimed(rig: Rig, want: int = 10) -> list[str]:
    return [claim.id for claim in (await rig.turn(want)).claimed]


@pytest.mark.parametrize("number", [1, 2])
async def test_a_job_that_was_left_is_taken_in_as_if_it_had_been_enqueued(
    rig: Rig, number: int
) -> None:
    await rig.declare()
    ids = ["a", "b"][:number]
    await leave(rig, *ids)
    assert await arrive(rig) == 1
    taken = await rig.dump()
    assert [job for job, _ in taken["ready"]] == ids
    assert taken["specs"] == dict.fromkeys(ids, b"010\n{}")
    assert taken["clock"]["enqueued"] == number
    assert taken["arrivals"] == []
    assert await rig.counters() == {"enqueued": number}
    assert await rig.events() == [{"worker": "", "enqueued": " ".join(ids)}]


@pytest.mark.parametrize(
    ("ids", "line", "place"),
    [("a", "010", "ready"), ("ab", "010", "ready"), ("a", "010 lane=@x", "lane:@x")],
    ids=["alone", "with another", "in a lane"],
)
async def test_it_was_enqueued_when_it_was_left(rig: Rig, ids: str, line: str, place: str) -> None:
    await rig.declare()
    await leave(rig, *ids, line=line)
    entry, *_ = await rig.engine.command("XRANGE", rig.queue, "arrivals", "-", "+")
    await arrive(rig)
    at = int(entry[0].split(b"-")[0]) * 1000
    (_, score), *_ = (await rig.dump())[place]
    assert score - 10 * 300 * SECOND == at + 1


CALLS: dict[str, Callable[[Rig], Awaitable[Any]]] = {
    "await": lambda rig: rig.engine.await_job("q", "a"),
    "cancel": lambda rig: rig.engine.cancel("q", ["a"]),
    "change": lambda rig: rig.engine.change("q", "a", priority=5),
    "clean": lambda rig: rig.engine.clean("q", "ready", 0, 10),
    "explain": lambda rig: rig.engine.explain("q", "a"),
    "look": lambda rig: rig.engine.look("q", ["a"]),
    "overview": lambda rig: rig.engine.overview("q"),
    "page": lambda rig: rig.engine.page("q", "ready", 10, after=("", ""), is_reverse=False),
    "promote": lambda rig: rig.engine.promote("q", ["a"]),
    "remove": lambda rig: rig.engine.remove("q", ["a"]),
    "rerun": lambda rig: rig.engine.rerun("q", ["a"]),
    "exchange": lambda rig: rig.turn(10),
}


@pytest.mark.parametrize("name", CALLS)
async def test_no_call_can_tell_it_from_one_that_was_enqueued(rig: Rig, name: str) -> None:
    """The second of two queues, where the same has come by the script, gets the same answer."""
    other = Rig(rig.engine.wire, rig.engine.namespace + "2")
    for one in (rig, other):
        one.engine.clock = None
        await one.declare()
    await leave(rig, "a")
    await other.add("a")
    left, enqueued = await CALLS[name](rig), await CALLS[name](other)
    if name not in {"explain", "overview", "page", "exchange", "look"}:  # which tell instants
        assert left == enqueued
    states, others = await rig.states(), await other.states()
    await other.obliterate()
    assert states == others


async def test_a_job_that_somebody_else_takes_in_meanwhile_is_found(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.declare()
    await leave(rig, "a")
    looked = rig.engine._looked

    async def slowly(queue: str, ids: Sequence[str]) -> list[Any]:
        found = await looked(queue, ids)
        await arrive(rig)
        return found

    monkeypatch.setattr(rig.engine, "_looked", slowly)
    (look,) = await rig.engine.look(rig.queue, ["a"])
    assert look is not None
    assert look.state == "ready"


async def test_jobs_start_in_the_order_in_which_they_came(rig: Rig) -> None:
    rig.engine.clock = None
    await rig.declare()
    await leave(rig, "a", "b")
    await rig.add("c")
    await leave(rig, "d", turn=9)
    await rig.add("e", "f")
    assert await claimed(rig) == ["a", "b", "c", "d", "e", "f"]


async def test_priorities_lanes_and_chains_count(rig: Rig) -> None:
    await rig.declare()
    await leave(rig, "late", line="050", turn=1)
    await leave(rig, "soon", line="001", turn=2)
    await leave(rig, "first", "second", line="010 chain=k/1/x/y lane=@x", turn=3)
    await arrive(rig)
    taken = await rig.dump()
    assert [job for job, _ in taken["blocked"]] == ["second"]
    assert {job for job, _ in taken["lane:@x"]} == {"first"}
    assert await claimed(rig) != []
    assert await rig.states() == {
        "soon": "running",
        "late": "running",
        "first": "running",
        "second": "blocked",
    }


async def test_a_call_that_came_twice_is_one(rig: Rig) -> None:
    await rig.declare()
    await leave(rig, "a", "b")
    await leave(rig, "a", "b")
    await arrive(rig)
    await leave(rig, "b", turn=2)
    await leave(rig, "a", turn=1)
    await arrive(rig)
    assert await claimed(rig) == ["a", "b"]


async def test_a_job_that_is_over_and_gone_does_not_come_back(rig: Rig) -> None:
    await rig.declare(retain=Retain(completed_count=0))
    await leave(rig, "a")
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    await leave(rig, "a")
    assert await claimed(rig) == []
    assert await rig.states() == {}


async def test_what_was_left_and_is_then_sent_by_the_script_is_one(rig: Rig) -> None:
    await rig.declare(retain=Retain(completed_count=0))
    await leave(rig, "a")
    again = await rig.add("a", caller=CALLER, call=call_of(1))
    assert again == [CREATED]
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    assert await rig.add("a", caller=CALLER, call=call_of(1)) == [CREATED]
    await leave(rig, "a")
    assert await claimed(rig) == []


@pytest.mark.parametrize("fact", sorted(_PLAIN))
async def test_whatever_a_producer_may_leave_is_taken_in(rig: Rig, fact: str) -> None:
    """What says more than that is thrown away: the two must know the same facts."""
    await rig.declare()
    value = "@a" if fact == "lane" else "k/1/a/x"
    await leave(rig, "a", line=f"010 {fact}={value}")
    await arrive(rig)
    assert list((await rig.dump()).get("specs", {})) == ["a"]


async def test_what_is_no_job_is_thrown_away(rig: Rig) -> None:
    await rig.declare()
    for line in ("x", "010 unique=u mode=live", "010 delay=5", "01"):
        await leave(rig, "bad", line=line)
    await rig.engine.command("XADD", rig.queue, "arrivals", "*", "a", "010\n{}")
    await leave(rig, "good")
    assert await claimed(rig) == ["good"]
    assert (await rig.dump())["arrivals"] == []


async def test_thousands_are_taken_in_by_the_next_call(rig: Rig) -> None:
    await rig.declare()
    await leave(rig, *(f"j{number:04d}" for number in range(2_100)))
    assert len(await claimed(rig, 100)) == 100
    assert (await rig.dump())["arrivals"] == []
    assert (await rig.dump())["clock"]["enqueued"] == 2_100


async def test_a_queue_that_lost_its_settings_keeps_what_was_left(rig: Rig) -> None:
    await rig.declare()
    await leave(rig, "a")
    await rig.engine.command("DEL", rig.queue, "conf")
    await rig.engine.command("HDEL", rig.queue, "clock", "digest")
    assert await arrive(rig) == -1
    await rig.engine.declare(rig.queue)
    assert await claimed(rig) == ["a"]


async def test_a_lone_job_makes_the_stream_by_the_clock_of_the_server_alone(rig: Rig) -> None:
    await rig.declare()
    await rig.add("a")
    assert not await is_open(rig)
    rig.engine.clock = None
    await rig.add("b", "c")
    assert not await is_open(rig)
    await rig.add("d")
    assert await is_open(rig)
    assert await claimed(rig) == ["a", "b", "c", "d"]


async def test_a_lone_job_of_a_tenant_opens_it_too(rig: Rig) -> None:
    rig.engine.clock = None
    await rig.declare()
    await rig.add("a", lane="@acme")
    assert await is_open(rig)


@pytest.mark.parametrize(
    "bounds", [Backpressure(soft=5, hard=10), Backpressure(tenant_hard=10)], ids=["queue", "tenant"]
)
async def test_it_is_closed_where_jobs_may_be_refused(rig: Rig, bounds: Backpressure) -> None:
    rig.engine.clock = None
    await rig.declare(backpressure=bounds)
    await rig.add("a")
    assert not await is_open(rig)


async def test_a_bound_closes_it_and_keeps_what_lay_there(rig: Rig) -> None:
    rig.engine.clock = None
    await rig.declare()
    await rig.add("a")
    await leave(rig, "b")
    await rig.edit(soft=1, hard=2)
    assert not await is_open(rig)
    assert await claimed(rig) == ["a", "b"]


async def test_a_decision_about_a_tenant_closes_it(rig: Rig) -> None:
    rig.engine.clock = None
    await rig.declare()
    await rig.add("a")
    await rig.engine.tenant(rig.queue, "@acme", {"size": "1"}, by="ops")
    assert not await is_open(rig)
    await rig.add("b")
    assert not await is_open(rig)


async def test_a_shard_that_has_an_epoch_has_none(rig: Rig) -> None:
    rig.engine.clock = None
    await rig.declare()
    await rig.add("a")
    await leave(rig, "b")
    await TransferCalls(rig.engine).set_standing(
        rig.queue, {"epoch": "1", "shards": "1", "shard": "0"}
    )
    assert not await is_open(rig)
    jobs = [("c", b"010\n{}")]
    await rig.engine.enqueue(rig.queue, "producer", rig.next_call(), jobs, epoch=1)
    assert not await is_open(rig)
    assert await claimed(rig) == ["a", "b", "c"]


async def test_an_obliterated_queue_has_none(rig: Rig) -> None:
    rig.engine.clock = None
    await rig.declare()
    await rig.add("a")
    await leave(rig, "b")
    await rig.obliterate()
    assert not await is_open(rig)


async def test_a_user_who_may_not_write_takes_nothing_in_and_spoils_nothing(
    rig: Rig, valkey: Server
) -> None:
    await rig.declare()
    await leave(rig, "a", "b")
    with valkey.client() as client:
        client.execute_command("ACL", "SETUSER", "reader", "reset", "on", ">pw", "~*", "&*")
        client.execute_command("ACL", "SETUSER", "reader", "+@all", "-zadd")
    wire = Wire(Address.parse(valkey.url.replace("unix://", "unix://reader:pw@", 1)))
    try:
        reader = Engine(wire, namespace=rig.engine.namespace, patience_s=60)
        assert not await reader.take_in(rig.queue)
    finally:
        await wire.close()
        with valkey.client() as client:
            client.execute_command("ACL", "DELUSER", "reader")
    assert await claimed(rig) == ["a", "b"]


@pytest.mark.parametrize("number", [1, 2])
async def test_whoever_takes_them_in_wakes_a_worker_for_them(rig: Rig, number: int) -> None:
    """Who left them may have been cut off before it could."""
    await rig.declare()
    await rig.engine.command("DEL", rig.queue, "wake")
    await leave(rig, *["a", "b"][:number])
    await arrive(rig)
    assert (await rig.dump())["wake"] == [("work", 0.0)]
    assert await claimed(rig) != []
    assert "wake" not in await rig.dump()
