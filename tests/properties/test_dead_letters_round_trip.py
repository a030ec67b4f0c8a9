"""G12: a dead job keeps its bytes and its history, through retries, redrives and further deaths."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from faena.engine import Address, Wire
from faena.engine.envelope import seal
from faena.engine.scripts import Settlement, Turn
from faena.outcomes import Buried, ErrorRecord
from tests._support.desk_rig import DeskRig, new_redrive, note
from tests._support.rig import Rig
from tests._support.search import searching
from tests._support.valkey import Server

_numbers = itertools.count()

odd = st.sampled_from([2**64 - 1, -(2**63), 1e308, [], {}, "\x00", "\u2028", "🪦", [[[]]], ""])
payloads = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.text(), odd),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
bodies = st.one_of(
    payloads.map(lambda payload: msgspec.json.encode({"task": "send", "payload": payload})),
    st.binary(max_size=200),
)
places = st.sampled_from([{}, {"lane": "@a"}, {"lane": "@a", "chain": "t/a"}, {"chain": "q"}])
facts = st.sampled_from([{}, {"delay": 5}, {"digest": "d"}, {"unique": "u", "mode": "live"}])
messages = st.text(max_size=80)
ways = st.lists(st.sampled_from(["retry", "redrive"]), min_size=1, max_size=3)


@searching(60)
@given(
    body=bodies,
    place=places,
    said=facts,
    priority=st.integers(1, 100),
    message=messages,
    ways=ways,
)
def test_a_dead_job_comes_back_byte_for_byte_and_knows_its_line(
    valkey: Server,
    body: bytes,
    place: dict[str, Any],
    said: dict[str, Any],
    priority: int,
    message: str,
    ways: list[str],
) -> None:
    spec = seal(priority, place | said, body)

    async def live_and_die(rig: Rig) -> None:
        desk_rig = DeskRig(rig)
        await rig.engine.enqueue("q", "p", "c1", [("a0", spec)])
        await rig.engine.promote("q", ["a0"])
        line = ["a0"]
        await die(rig, message)
        for turn, way in enumerate(ways):
            line.append(await come_back(desk_rig, line[-1], way, turn))
            await die(rig, message)
        await check(rig, line, spec, message)

    run_on(valkey, live_and_die)


def run_on(valkey: Server, work: Callable[[Rig], Awaitable[None]]) -> None:
    async def session() -> None:
        wire = Wire(Address.parse(valkey.url))
        rig = Rig(wire, f"trip{next(_numbers)}")
        try:
            await work(rig)
        finally:
            await rig.obliterate()
            await wire.close()

    asyncio.run(session())


async def die(rig: Rig, message: str) -> None:
    """Claim the job, which comes with its bytes, and bury it."""
    call = rig.next_call()
    (claim,) = (await rig.turn(5, call=call)).claimed
    error = ErrorRecord(name="Boom", message=message.encode("utf-8", "replace").decode())
    turn = Turn(rig.next_call(), 0, [Settlement(claim.id, call, Buried(error, note=note()))])
    await rig.engine.exchange("q", "worker", "worker", turn)
    rig.clock.go(1)


async def come_back(desk_rig: DeskRig, job: str, way: str, turn: int) -> str:
    if way == "retry":
        assert await desk_rig.retry_as_new(job) == ["OK"]
        return f"{job}2"
    await desk_rig.calls.redrives("q", "begin", f"r{turn}", new_redrive())
    step = await desk_rig.step(f"r{turn}", most=1)
    assert step.moved == 1
    return f"new{desk_rig._ids - 1}"


async def check(rig: Rig, line: list[str], spec: bytes, message: str) -> None:
    taken = await rig.dump()
    assert taken["specs"] == dict.fromkeys(line, spec)
    assert {job for job, _ in taken["dead"]} == set(line)
    for before, after in itertools.pairwise(line):
        assert taken["desk"][before]["to"] == after
        mark = taken["marks"][after]
        assert (mark["b"], mark["o"], mark["a"]) == (before, line[0], 1)
    for job in line:  # each with what it died of, and nothing of the others
        info = taken[f"info:{job}"]
        said = msgspec.json.decode(info["error:1"])["message"]
        assert (info["errors"], said) == ("1", message.encode("utf-8", "replace").decode())
    statuses = [taken["desk"][job]["s"] for job in line]
    assert statuses == ["retried"] * (len(line) - 1) + ["pending"]
