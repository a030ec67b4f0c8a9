"""Carries letters and errands between homes.

    a job of a flow ends    its home writes a letter, in the script that settles it
    the letter is read      at the flow's queue, which notes what must be sent next: errands
    errands are run         the jobs are enqueued, and struck off the list

Everybody may carry everything at any time: a letter is read once whoever brings it, a job has one
id and comes once, and nothing is struck off before it has arrived. So whoever dies on the way loses
nothing, and the next worker that sweeps the home goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from faena.client import Client
from faena.engine import Engine
from faena.engine.envelope import seal
from faena.engine.mail import Errand, Made, Mail
from faena.errors import ConfigError, FaenaError, JobError
from faena.job import Input, Spec
from faena.options import Durability
from faena.producer import BATCH_BYTES, NewJob

_VALID_US: Final = 20_000_000
"""How long an errand that was read may be run; beyond that it is read again."""

_LARGEST: Final = 8 << 20
"""Bytes of results that travel with a job that comes after others."""

_log = logging.getLogger("faena.flows")


class Postman:
    """Carries what homes have to carry, as it is told of them."""

    def __init__(self, engine: Engine, client: Client) -> None:
        self._mail = Mail(engine)
        self._client = client
        self._homes: dict[str, None] = {}
        self._news = asyncio.Event()
        self._skews: dict[str, int] = {}
        """How far the clocks of queues are ahead of those they were sent jobs from."""

    def tell(self, home: str) -> None:
        """A home has something to be carried."""
        self._homes[home] = None
        self._news.set()

    async def run(self) -> None:
        """Carry until cancelled; what fails is told again by a later sweep."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._homes:
                home = next(iter(self._homes))
                del self._homes[home]
                try:
                    await self.carry(home)
                except FaenaError as error:
                    _log.warning("home %s: its letters must wait: %s", home, error)

    async def carry(self, home: str) -> None:
        """Carry everything that a home has, and what comes of it."""
        waiting = [home]
        while waiting:
            one = waiting.pop(0)
            for to in await self._mail.addressees(one):
                if await self._deliver(one, to) and to not in waiting:
                    waiting.append(to)
            await self._run_errands(one)

    async def _deliver(self, home: str, to: str) -> bool:
        """Bring all letters of a home to a queue; whether something is to be carried from there."""
        has_more = False
        left = 1
        while left and (letters := await self._mail.letters(home, to)):
            has_more = await self._mail.receive(to, home, letters) or has_more
            left = await self._mail.posted(home, to, letters[-1].id)
        return has_more

    # -- errands --------------------------------------------------------------------------------

    async def _run_errands(self, queue: str) -> None:
        start = 0
        while True:
            now, errands = await self._mail.errands(queue, start)
            if not errands:
                return
            done = [one.name for one in errands if not one.queue]
            for to, some in _by_queue(errands).items():
                done += await self._run(to, some, now)
            await self._mail.done(queue, done)
            start += len(errands) - len(done)

    async def _run(self, queue: str, errands: Sequence[Errand], now: int) -> list[str]:
        """Run errands in one queue; the names of those that are done."""
        try:
            sent = await self._send(queue, [one for one in errands if one.made], now)
            cancelled = [
                one.name for one in errands if not one.made and await self._cancel(queue, one.job)
            ]
        except ConfigError as error:
            _log.warning("jobs of flows wait for a program that knows their queue: %s", error)
            return []
        return sent + cancelled

    async def _send(self, queue: str, errands: Sequence[Errand], now: int) -> list[str]:
        if not errands:
            return []
        by = now + _VALID_US + self._skews.get(queue, 0)
        jobs = [job_of(one, by) for one in errands]
        answers = [
            answer
            for part in _parts(jobs)
            for answer in (await self._client.enqueue(queue, part, Durability())).answers
        ]
        late = [int(answer.detail) for answer in answers if answer.code == "LATE"]
        if late:
            self._skews[queue] = max(late) - now
        return [
            one.name
            for one, answer in zip(errands, answers, strict=True)
            if answer.code not in {"LATE", "OVERLOADED"}
        ]

    async def _cancel(self, queue: str, job: str) -> bool:
        """One that has ended, or of which nothing was kept, needs no cancelling."""
        with contextlib.suppress(JobError):
            await self._client.cancel(queue, job)
        return True


def _parts(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """As much as one call may carry, by bytes."""
    start = size = 0
    for at, job in enumerate(jobs):
        size += len(job.spec)
        if at > start and size > BATCH_BYTES:
            yield jobs[start:at]
            start, size = at, len(job.spec)
    yield jobs[start:]


def _by_queue(errands: Sequence[Errand]) -> dict[str, list[Errand]]:
    queues: dict[str, list[Errand]] = defaultdict(list)
    for one in errands:
        if one.queue:
            queues[one.queue].append(one)
    return queues


def job_of(errand: Errand, by: int) -> NewJob:
    """The job as it is sent: with what came of those before it."""
    made = Made.unpack(errand.made)
    spec = msgspec.json.decode(made.body, type=Spec)
    if errand.name.startswith("g:"):
        spec.group = _counts(errand.inputs)
    else:
        spec.parents = _parents(errand.inputs)
    digest = hashlib.blake2b(errand.job.encode(), digest_size=12).hexdigest()
    facts = {**made.facts, "digest": digest, "by": by}
    return NewJob(errand.job, seal(made.priority, facts, msgspec.json.encode(spec)))


def _counts(flat: Sequence[Any]) -> dict[str, int]:
    return {flat[i].decode(): int(flat[i + 1]) for i in range(0, len(flat), 2)}


def _parents(flat: Sequence[Any]) -> dict[str, Input]:
    is_too_large = sum(len(words) for words in flat[2::3]) > _LARGEST
    parents: dict[str, Input] = {}
    for name, state, words in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
        parents[name.decode()] = _input(state.decode(), b"" if is_too_large else words)
    return parents


def _input(state: str, words: bytes) -> Input:
    if not words:
        return Input(state)
    if state == "completed":
        return Input(state, result=msgspec.Raw(words))
    return Input(state, error=msgspec.Raw(words))
