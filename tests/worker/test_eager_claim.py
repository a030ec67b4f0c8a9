"""A claim that was sent ahead of the work: what is done with its answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from faena.engine.scripts import Exchanged, Turn
from faena.producing.batcher import CallIds
from faena.worker.fetch.eager_claim import EagerClaim
from faena.worker.fetch.fetcher import Fetcher
from tests._support.eventually import eventually
from tests._support.rig import Rig


class Fetching:
    """Asks for one claim, and writes down what becomes of it."""

    shard = "q"

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.begun: list[str] = []
        self.asked_again = 0
        self.turns = [Turn(rig.next_call(), 5)]
        self.waiting: asyncio.Task[None] | None = None
        self.is_to_stop = False

    def spare_turn(self) -> Turn | None:
        return self.turns.pop() if self.turns else None

    def start_first(self, _turn: Turn, exchanged: Exchanged) -> None:
        self.begun += [claim.id for claim in exchanged.claimed]
        if self.is_to_stop and self.waiting is not None:
            self.waiting.cancel()

    take_in = start_first

    async def ask(self, caller: str, turn: Turn) -> Exchanged:
        self.asked_again += 1
        return await self.rig.engine.exchange(self.shard, caller, "worker", turn)


def look_out(rig: Rig, fetching: Fetching) -> asyncio.Task[None]:
    eager_claim = EagerClaim(rig.engine, cast("Fetcher", fetching), "worker", CallIds())
    eager_claim.idle_changed()
    fetching.waiting = asyncio.create_task(eager_claim.run())
    return fetching.waiting


async def is_blocked(rig: Rig) -> bool:
    told: Any = await rig.engine.wire.call("INFO", "clients")
    return b"blocked_clients:1" in told


async def test_an_answer_that_comes_as_the_worker_stops_is_begun_once(rig: Rig) -> None:
    fetching = Fetching(rig)
    fetching.is_to_stop = True
    waiting = look_out(rig, fetching)
    await eventually(lambda: is_blocked(rig))
    await rig.add("a")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert fetching.begun == ["a"]
    assert fetching.asked_again == 0


async def test_a_claim_whose_answer_is_not_there_when_the_worker_stops_is_asked_for(
    rig: Rig,
) -> None:
    fetching = Fetching(rig)
    waiting = look_out(rig, fetching)
    await eventually(lambda: is_blocked(rig))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await rig.add("a")
    assert fetching.asked_again == 1
    assert fetching.begun == []
    assert (await rig.states())["a"] == "ready"


async def test_what_fails_at_the_start_is_raised_where_the_claim_was_made(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_turn: Turn, _exchanged: Exchanged) -> None:
        raise ZeroDivisionError

    fetching = Fetching(rig)
    monkeypatch.setattr(fetching, "start_first", failing)
    waiting = look_out(rig, fetching)
    await eventually(lambda: is_blocked(rig))
    await rig.add("a")
    with pytest.raises(ZeroDivisionError):
        await waiting
