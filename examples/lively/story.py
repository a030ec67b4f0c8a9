"""What happens during the day. Each scene does one thing to the queues and says what it saw."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from examples.lively.crew import Crew
from examples.lively.ledger import Reader
from examples.lively.screen import Screen
from examples.lively.shop import ATTEMPTS, Errand, Shop
from examples.lively.verdict import Ending, Plan
from faena import Draft, Receipt, State, Task
from faena.errors import JobCancelled, JobFailed
from faena.states import LIVE

_WAVES = 20
_SHARES = {  # of all jobs, in percent
    "count_visit": 50,
    "send_message": 18,
    "take_payment": 18,
    "render_pdf": 9,
    "request_cae": 5,
}
_VOICES = 6

COMPLETED = Ending(State.COMPLETED, 1)

R = TypeVar("R")


@dataclass
class Stage:
    """Everything a scene works with."""

    shop: Shop
    crew: Crew
    ledger: Reader
    screen: Screen
    jobs: int
    length_s: float
    chance: random.Random
    plan: Plan = field(default_factory=dict)

    async def send(
        self, enqueueing: Awaitable[Receipt[R]], ending: Ending = COMPLETED
    ) -> Receipt[R]:
        """Enqueue one errand and write down how it must end."""
        receipt = await enqueueing
        self.plan[receipt.id] = ending
        return receipt


Scene = Callable[[Stage], Awaitable[None]]


def _ending(errand: Errand) -> Ending:
    if errand.is_void:
        return Ending(State.DEAD, 1)
    if errand.fails >= ATTEMPTS:
        return Ending(State.DEAD, ATTEMPTS)
    return Ending(State.COMPLETED, errand.fails + 1)


async def day(stage: Stage) -> None:
    """From the first wave until nothing is left to do."""
    async with asyncio.TaskGroup() as scenes:
        scenes.create_task(work_arrives(stage))
        for scene, share in (
            (cancel_two, 0.15),
            (jump_the_queue, 0.3),
            (hold_afip, 0.4),
            (answer_429, 0.5),
            (kill_a_worker, 0.65),
        ):
            scenes.create_task(_later(stage.length_s * share, scene, stage))
    await _until_empty(stage)


async def _later(seconds: float, scene: Scene, stage: Stage) -> None:
    await asyncio.sleep(seconds)
    await scene(stage)


async def work_arrives(stage: Stage) -> None:
    """Waves of errands: some fail and are retried, some are for later."""
    stage.screen.say(f"some {stage.jobs:,} jobs will arrive within {stage.length_s:.0f} s")
    sent = dict.fromkeys(_SHARES, 0)
    for wave in range(1, _WAVES + 1):
        tide = 1 - (1 - wave / _WAVES) ** 2  # the morning brings more than the evening
        for name, share in _SHARES.items():
            due = round(stage.jobs * share / 100 * tide)
            await _send_wave(stage, getattr(stage.shop, name), due - sent[name])
            sent[name] = due
        await asyncio.sleep(stage.length_s / _WAVES)
    stage.screen.say("the last wave is in")


async def _send_wave(stage: Stage, task: Task[Errand, Any], number: int) -> None:
    drafts: list[Draft[Errand]] = []
    endings: list[Ending] = []
    for _ in range(number):
        errand = _errand(stage.chance, task)
        delay = stage.chance.choice(("1s", "2s", "3s")) if stage.chance.random() < 0.1 else "0s"
        drafts.append(task.draft(errand, delay=delay))
        endings.append(_ending(errand))
    receipts = await task.enqueue_many(drafts)
    stage.plan.update(zip((receipt.id for receipt in receipts), endings, strict=True))


def _errand(chance: random.Random, task: Task[Errand, Any]) -> Errand:
    takes_ms = chance.randint(20, 80)
    luck = chance.random()
    if task.name == "render_pdf":
        return Errand(takes_ms, is_void=luck < 0.02)
    if task.name == "count_visit" or luck > 0.15:
        return Errand(takes_ms)
    return Errand(takes_ms, fails=ATTEMPTS if luck < 0.02 else chance.randint(1, 2))


async def cancel_two(stage: Stage) -> None:
    """One job is called off while it waits, one while it runs."""
    shop = stage.shop
    waiting = await stage.send(
        shop.send_message.enqueue(Errand(50), delay="10m"), Ending(State.CANCELLED, 0)
    )
    running = await stage.send(
        shop.transcribe.enqueue(Errand(60_000), priority="critical"), Ending(State.CANCELLED, 1)
    )
    await waiting.handle.cancel()
    while not stage.ledger.starts[running.id]:
        await asyncio.sleep(0.05)
        stage.ledger.read()
    began = time.monotonic()
    await running.handle.cancel()
    with contextlib.suppress(JobCancelled):
        await running.handle.result()
    took_ms = (time.monotonic() - began) * 1000
    stage.screen.say(f"a running transcription was cancelled; it stopped after {took_ms:.0f} ms")


async def jump_the_queue(stage: Stage) -> None:
    """A critical job does not stand behind the others."""
    began = time.monotonic()
    urgent = await stage.send(stage.shop.count_visit.enqueue(Errand(20), priority="critical"))
    counts = await stage.shop.app.queues["analytics"].counts()
    await urgent.handle.result()
    took_ms = (time.monotonic() - began) * 1000
    stage.screen.say(
        f"a critical job passed {counts['ready']:,} others of analytics: done in {took_ms:.0f} ms"
    )


async def hold_afip(stage: Stage) -> None:
    """The tax authority is down: nothing is tried, nothing is spent."""
    seconds = max(1, round(stage.length_s / 5))
    await stage.shop.app.queues["afip.invoice"].pause(
        reason="afip-down", lasting=f"{seconds}s", by="demo"
    )
    stage.screen.say(f"AFIP is down: afip.invoice is held for {seconds} s")


async def answer_429(stage: Stage) -> None:
    """One handler hears "too many requests", and every worker waits."""
    busy = Errand(20, busy_until=time.time() + 1.5)
    await stage.send(stage.shop.send_message.enqueue(busy, priority="critical"))
    stage.screen.say("WhatsApp answers 429: the queue waits as long as it asks")


async def kill_a_worker(stage: Stage) -> None:
    """Kill -9 the busiest worker; another one finishes its jobs."""
    for _ in range(_VOICES):
        await stage.send(stage.shop.transcribe.enqueue(Errand(1500)))
    victim, jobs = await _busiest(stage)
    stage.crew.kill(victim)
    newcomer = stage.crew.hire()
    stage.screen.say(
        f"{victim} was killed with -9 while it ran {len(jobs)} jobs; {newcomer} starts"
    )
    began = time.monotonic()
    for job_id, queue in jobs.items():
        await _until_over(stage, queue, job_id)
    took_s = time.monotonic() - began
    stage.screen.say(f"all {len(jobs)} jobs of {victim} ended elsewhere, {took_s:.1f} s later")


async def _busiest(stage: Stage) -> tuple[str, dict[str, str]]:
    """The worker with most jobs under way, once one has a transcription among them."""
    while True:
        stage.ledger.read()
        loads = {name: stage.ledger.running_on(name) for name in stage.crew.names}
        name = max(loads, key=lambda one: len(loads[one]))
        if "voice.transcription" in loads[name].values():
            return name, loads[name]
        await asyncio.sleep(0.02)


async def _until_over(stage: Stage, queue: str, job_id: str) -> None:
    with contextlib.suppress(JobFailed):
        await stage.shop.app.queues[queue].handle(job_id).result()


async def _until_empty(stage: Stage) -> None:
    while True:
        counts = [await queue.counts() for queue in stage.shop.queues]
        if not any(one[state] for one in counts for state in LIVE):
            return
        await asyncio.sleep(0.1)
