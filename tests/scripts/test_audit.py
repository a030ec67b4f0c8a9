"""audit.lua, and the service that judges what it reads."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from faena.engine.calls.flows import FlowCalls
from faena.engine.scripts import Claim
from faena.inspection.audit import audit
from faena.limits import Limit
from faena.outcomes import Completed, Retried
from tests._support.populate import (
    populate,
    populate_flows,
    populate_lanes,
    populate_parts,
    populate_schedules,
    run_one,
)
from tests._support.rig import BOOM, Rig


async def test_a_queue_in_order_has_no_violation_and_is_not_changed(rig: Rig) -> None:
    await populate(rig)
    await run_one(rig)
    await rig.remember()
    assert await audit(rig.engine, "q") == []
    assert await rig.is_untouched()


async def test_a_queue_of_lanes_in_order_has_no_violation(rig: Rig) -> None:
    await populate_lanes(rig)
    await rig.remember()
    assert await audit(rig.engine, "q") == []
    assert await rig.is_untouched()


async def test_a_schedule_that_is_due_has_a_record(rig: Rig) -> None:
    await populate_schedules(rig)
    assert await audit(rig.engine, "q") == []
    await rig.engine.command("HDEL", "q", "schedules", "nightly")
    (found,) = await audit(rig.engine, "q")
    assert str(found) == "schedule nightly: is due and must have a record"


async def test_a_queue_with_everything_has_no_violation(rig: Rig) -> None:
    """Flows that are written, begun and over, a group, schedules, a redrive, tenants that move."""
    await populate_parts(rig)
    await FlowCalls(rig.engine).flow("q", "written", "put", "s:1", "waiting 0 0", run=1)
    await rig.remember()
    assert await audit(rig.engine, "q") == []
    assert await rig.is_untouched()


FLOW_DAMAGES = [
    (["ZREM", "flows", "live"], "flow live: must have a TTL, or be in flows or flows_done"),
    (["ZADD", "flows", 1, "over"], "flow over: must be listed once, is in flows and flows_done"),
    (["ZADD", "flows", 1, "none"], "flow none: is in flows and must be there"),
    (["EXPIRE", "flow:live", 9], "flow live: is in flows and must not have a TTL"),
    (["PERSIST", "group:g"], "key group:g: must have a TTL"),
]


@pytest.mark.parametrize(
    ("command", "finding"), FLOW_DAMAGES, ids=lambda part: part if isinstance(part, str) else ""
)
async def test_damage_of_flows_is_found(rig: Rig, command: list[Any], finding: str) -> None:
    await populate_flows(rig)
    await rig.engine.command(command[0], "q", *command[1:])
    assert finding in [str(violation) for violation in await audit(rig.engine, "q")]
    await rig.engine.wire.call("FLUSHALL")


LANE_DAMAGES = [
    (["ZREM", "lane:@c", "later"], "job later: is ready and must be in lane @c"),
    (["ZADD", "lane:@b", 1, "lone"], "job lone: is running and must not be in lane @b"),
    (
        ["ZREM", "ring", "@c"],
        "lane @c: has 1 ready jobs and must be in 1 of ring and parked, is in neither",
    ),
    (
        ["ZADD", "parked", 1, "@c"],
        "lane @c: has 1 ready jobs and must be in 1 of ring and parked, is in ring and parked",
    ),
    (
        ["ZADD", "ring", 1, "@none"],
        "lane @none: has 0 ready jobs and must be in 0 of ring and parked, is in ring",
    ),
    (["HSET", "lanes", "@c", 0], "lane @c: has 0 live jobs, but 1 ready and 0 running"),
    (["HDEL", "heads", "k/1/a/x"], "job first: is running and must have the turn of chain k/1/a/x"),
    (["HDEL", "heads", "k/1/a/x"], "job behind: is blocked and must have a job to wait for"),
    (["ZREM", "tail:k/1/a/x", "behind"], "job behind: is blocked and must have a job to wait for"),
    (
        ["ZADD", "tail:k/1/a/x", 1, "first"],
        "job first: is running and must not be blocked in chain k/1/a/x",
    ),
]


@pytest.mark.parametrize(("command", "expected"), LANE_DAMAGES, ids=lambda one: str(one)[:40])
async def test_every_damage_to_a_lane_is_named(
    rig: Rig, command: list[object], expected: str
) -> None:
    await populate_lanes(rig)
    key = rig.engine._keys_of("q")
    verb, name, *rest = command
    await rig.engine.wire.call(str(verb), key(str(name)), *map(str, rest))
    assert expected in map(str, await audit(rig.engine, "q"))
    if verb == "ZADD":  # a ghost that obliterating would not find
        await rig.engine.wire.call("ZREM", key(str(name)), str(rest[1]))


async def test_a_queue_that_is_not_there_is_in_order(rig: Rig) -> None:
    assert await audit(rig.engine, "never") == []


DESK_RECORD = msgspec.msgpack.encode(
    {"s": "pending", "t": "t", "o": "", "e": "Boom", "c": "", "f": "f"}
)
NO_LETTER = [b"", [], []]

DAMAGES = [
    (["HDEL", "desk", "dead"], "job dead: is dead and must be at the dead-letter desk"),
    (["HSET", "desk", "done", DESK_RECORD], "total desk: must be the 1 dead, is 2"),
    (
        ["HSET", "desk", "done", DESK_RECORD],
        "job done: is completed and must not be at the dead-letter desk",
    ),
    (["ZREM", "desk:task:t", "dead"], "job dead: is dead and must be in desk:task:t"),
    (["ZADD", "desk:task:t", 1, "dead"], "job dead: is dead and must be in desk:task:t"),
    (
        ["ZADD", "desk:task:other", 1, "dead"],
        "key desk:task:other: job dead must not be in it, and is",
    ),
    (
        ["ZADD", "desk:status:pending", 1, "ghost"],
        "key desk:status:pending: job ghost must not be in it, and is",
    ),
    (["ZADD", "desk_due", 1, "done"], "job done: is completed and must not be due for a retry"),
    (
        ["ZADD", "delayed", 1, "running"],
        "job running: must be in one state, is in delayed and running",
    ),
    (["HDEL", "specs", "done"], "job done: is completed and must have a spec"),
    (
        ["ZREM", "running", "running"],
        "job running: must be in a state, is only in specs and leases",
    ),
    (["HDEL", "leases", "running"], "job running: is running and must have a lease"),
    (["HSET", "leases", "dead", "x"], "job dead: is dead and must not have a lease"),
    (["HSET", "leases", "ghost", "x"], "job ghost: must be in a state, is only in leases"),
    (["HSET", "results", "dead", "x"], "job dead: is dead and must not have a result"),
    (["HSET", "waiters", "done", 1], "job done: is completed and must not be awaited"),
    (["HDEL", "marks", "dead"], "job dead: has information that its mark does not record"),
    (["HDEL", "marks", "dead"], "key info:dead: job dead must own it, and does not"),
    (["HSET", "info:ghost", "a", 1], "key info:ghost: job ghost must own it, and does not"),
    (["SET", "unique:live:x", "ghost"], "key unique:live:x: job ghost must own it, and does not"),
    (["SET", "unique:last:u", "done"], "job follower: is blocked and must have a job to wait for"),
    (["ZREM", "delayed", "leader"], "total specs: must be the 6 in states, is 7"),
    (["HSET", "specs", "ghost", "x"], "job ghost: must be in a state, is only in specs"),
    (
        ["HINCRBY", "clock", "removed", 1],
        "total conservation: enqueued less removed must be 7, is 6",
    ),
    (["RPUSH", "window:60000000", "1 3"], "total window:60000000: must add up to 7, is 4"),
    (["PERSIST", "call:worker"], "key call:worker: must have a TTL"),
    (["SET", "nonsense", 1], "key nonsense: must be in the catalogue"),
    (["SET", "workers", 1], "key workers: must be a zset, is a string"),
]


@pytest.mark.parametrize(
    ("command", "finding"), DAMAGES, ids=lambda part: part if isinstance(part, str) else ""
)
async def test_damage_is_found(rig: Rig, command: list[str], finding: str) -> None:
    await populate(rig)
    await run_one(rig)
    verb, name, *rest = command
    if verb == "SET" and name == "workers":
        await rig.engine.wire.call("DEL", rig.engine._keys_of("q")(name))
    await rig.engine.wire.call(verb, rig.engine._keys_of("q")(name), *rest)
    assert finding in [str(violation) for violation in await audit(rig.engine, "q")]
    await rig.engine.wire.call("FLUSHALL")


async def test_a_queue_in_use_is_found_in_order(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1000000/s")])
    stopped = asyncio.Event()

    async def produce() -> None:
        for number in range(40):
            await rig.add(*(f"job{number}.{index}" for index in range(50)))
        stopped.set()

    async def work(worker: str) -> None:
        ended: list[tuple[str, str, Completed | Retried]] = []
        number = 0
        while not stopped.is_set() or ended:
            number += 1
            exchanged = await rig.turn(30, *ended, worker=worker, call=f"{worker}{number:05d}")
            ended = [(claim.id, claim.lease, outcome(claim)) for claim in exchanged.claimed]

    def outcome(claim: Claim) -> Completed | Retried:
        return Completed(b"1") if claim.attempts else Retried(0, BOOM)

    async with asyncio.TaskGroup() as group:
        group.create_task(produce())
        group.create_task(work("one"))
        group.create_task(work("two"))
        looks = 0
        while not stopped.is_set():
            assert await audit(rig.engine, "q") == []
            looks += 1
    assert looks > 0
    assert await audit(rig.engine, "q") == []


async def test_pages_are_small_and_together_complete(rig: Rig) -> None:
    ids = [f"job{number:04d}" for number in range(1000)]
    await rig.add(*ids)
    key = rig.engine._keys_of("q")
    await rig.engine.wire.call("ZADD", key("dead"), 1, ids[777])
    assert [violation.name for violation in await audit(rig.engine, "q")] == [
        ids[777],
        "conservation",
        "desk",
        "specs",
    ]
    await rig.engine.wire.call("ZREM", key("dead"), ids[777])


async def test_a_job_is_read_with_every_place_that_knows_it(rig: Rig) -> None:
    await populate(rig)
    await run_one(rig)
    reply = await rig.engine.ask("audit", "q", "running", "follower", "never", what="jobs")
    running, follower, never = reply
    assert running == [[b"running"], b"", b"", [b"specs", b"leases"], b"", b"", *NO_LETTER]
    assert (follower[0], follower[2:]) == (
        [b"blocked"],
        [b"leader", [b"specs", b"marks", b"waiters"], b"", b"", *NO_LETTER],
    )
    assert never == [[], b"", b"", [], b"", b"", *NO_LETTER]
