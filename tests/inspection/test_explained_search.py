"""Queues that a dice has used: explaining never fails, and no job starts before it was said to."""

from __future__ import annotations

import random
from typing import Any

import pytest

from faena.inspection.explanation import Explanation
from faena.limits import Limit
from faena.outcomes import Completed, Limited, Outcome, Retried, Snoozed
from tests._support.explained import explain
from tests._support.rig import BOOM, SECOND, T0, Rig
from tests._support.search import IS_FULL, SEED

_GAMES = 300 if IS_FULL else 20
_STEPS = 14
_ROUNDS = 400


class Game:
    """Random calls of one queue, and then only a worker that claims all it can."""

    def __init__(self, rig: Rig, dice: random.Random) -> None:
        self.rig, self.dice = rig, dice
        self.number = 0
        self.promised: dict[str, int] = {}

    async def begin(self) -> None:
        options: dict[str, Any] = {}
        for name in ("limits", "tenant_limits", "key_limits"):
            if self.dice.random() < 0.4:
                options[name] = self._limits()
        if self.dice.random() < 0.2:
            options["limits"] = [Limit("20/9s", cost="tokens")]
        await self.rig.declare(**options)
        await self.rig.turn(is_sweep=True)

    def _limits(self) -> list[Limit]:
        least = self.dice.randint(1, 4)
        short, long = Limit(f"{least}/2s"), Limit(f"{least + self.dice.randint(1, 4)}/30s")
        return self.dice.choice(([short], [long], [short, long]))

    async def step(self) -> None:
        move = self.dice.choice((self._add, self._add, self._work, self._hold, self._go))
        await move()

    async def _add(self) -> None:
        for _ in range(self.dice.randint(1, 4)):
            self.number += 1
            await self.rig.add(
                f"job{self.number}", priority=self.dice.randint(1, 20), **self._facts()
            )

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if (tenant := self.dice.choice("abx")) != "x":
            facts["lane"] = f"@{tenant}"
            if self.dice.random() < 0.4:
                facts["key"] = f"k/1/{tenant}/{self.dice.choice('pq')}"
            elif self.dice.random() < 0.3:
                facts["chain"] = f"{tenant}/{tenant}"
        if self.dice.random() < 0.2:
            facts["delay"] = self.dice.randint(1, 20 * SECOND)
        if self.dice.random() < 0.1:
            facts["expires"] = self.rig.clock.now + self.dice.randint(1, 60 * SECOND)
        if self.dice.random() < 0.2:
            facts["cost"] = f"tokens:{self.dice.randint(1, 12)}"
        return facts

    async def _work(self) -> None:
        claimed = (await self.rig.turn(self.dice.randint(1, 5))).claimed
        await self.rig.turn(0, *((one.id, one.lease, self._outcome()) for one in claimed))

    def _outcome(self) -> Outcome:
        delay = self.dice.randint(0, 9 * SECOND)
        others: list[Outcome] = [Retried(delay, BOOM), Snoozed(delay, "closed"), Limited(delay + 1)]
        return Completed() if self.dice.random() < 0.7 else self.dice.choice(others)

    async def _hold(self) -> None:
        length = self.dice.randint(1, 20 * SECOND)
        if self.dice.random() < 0.5:
            await self.rig.engine.hold("q", "pause", length, "ana")
        else:
            changes = {"held_until": str(self.rig.clock.now + length)}
            await self.rig.engine.tenant("q", self.dice.choice(("@a", "@b")), changes, by="ana")

    async def _go(self) -> None:
        self.rig.clock.go(self.dice.random() * 5)

    async def explain_all(self) -> None:
        for number in range(1, self.number + 1):
            told = await explain(self.rig, f"job{number}")
            _check(told)
            start = told.expected_start
            if start is not None and start.earliest is not None:
                self.promised[told.id] = start.earliest

    async def run_out(self) -> list[str]:
        """Claim everything at the first instant it can be; those that came too early."""
        early: list[str] = []
        for _ in range(_ROUNDS):
            exchanged = await self.rig.turn(100)
            now = self.rig.clock.now
            for one in exchanged.claimed:
                promised = self.promised.pop(one.id, 0)
                if now < promised:
                    early.append(f"{one.id} started {promised - now} us before it was said to")
            ends = ((one.id, one.lease, Completed()) for one in exchanged.claimed)
            exchanged = await self.rig.turn(0, *ends) if exchanged.claimed else exchanged
            if not exchanged.next_at and not exchanged.more:
                return early
            self.rig.clock.now = max(now + (0 if exchanged.more else 1), exchanged.next_at)
        raise AssertionError("a queue must come to rest")


def _check(told: Explanation) -> None:
    """What is true of every explanation."""
    assert str(told)
    assert told.reasons
    assert (told.expected_start is not None) == told.is_waiting
    assert bool(told.next) == told.is_waiting, told
    told.to_dict()


@pytest.mark.parametrize("number", range(_GAMES))
async def test_no_job_of_a_random_queue_starts_before_it_was_said_to(rig: Rig, number: int) -> None:
    game = Game(rig, random.Random(f"{SEED} {number}"))
    await game.begin()
    for _ in range(_STEPS):
        await game.step()
    await game.explain_all()
    before = dict(game.promised)
    early = await game.run_out()
    assert not early, f"{early} of {before} at {rig.clock.now - T0}"


HOSTILE = [
    *("a.b.1", "q.f.1", "q.f.999999999", "q.g.complete", "q.g.success", "q..1", "..", "q/x.f.1"),
    *("1" * 128, "{0}", "{queue}", "%s", "upstream x", "q.f.1-2", "*", "é", "q.f.-1", "q.f.1:2"),
    *(
        "@resilience.f.1",
        "q.f.\u0661",
        "[bold]",
        "'; DROP TABLE faena.outbox; --".replace(" ", "_"),
    ),
]


@pytest.mark.parametrize("job", HOSTILE)
async def test_an_id_that_was_chosen_to_do_harm_is_unknown(rig: Rig, job: str) -> None:
    await rig.turn(is_sweep=True)
    await rig.engine.command("HSET", "q", "flow:f", "state", "running", "v:1", "x", "s:1", "\xff")
    await rig.remember()
    told = await explain(rig, job)
    assert (told.state, told.source, told.reasons[0].code) == (None, "nowhere", "unknown")
    assert job in str(told)
    assert await rig.is_untouched()
    await rig.engine.command("DEL", "q", "flow:f")


@pytest.mark.parametrize("job", [one for one in HOSTILE if one])
async def test_a_job_of_such_an_id_is_explained(rig: Rig, job: str) -> None:
    await rig.turn(is_sweep=True)
    await rig.add("first", job, lane="@a", chain="a/a")
    told = await explain(rig, job)
    assert told.reasons[0].code == "order"
    assert told.next == ("job first ends",)
    other = (await explain(rig, "first")).reasons[0]
    assert other.next
