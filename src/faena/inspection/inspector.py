"""The read side: counts, jobs and pages of jobs, and the wait for a result. Changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from faena.engine import Engine, scripts
from faena.engine.calls.deadletter import Position
from faena.engine.overview import Overview
from faena.engine.wire.patience import within
from faena.engine.wire.subscription import Subscription
from faena.errors import JobNotFound, ResultTimeout, StoreUnavailable
from faena.inspection.explainer import Explainer
from faena.inspection.explanation import Explanation
from faena.inspection.job_view import read_job
from faena.inspection.past import PastJobs, PastReader, Source, Wanted, known_of, merged
from faena.inspection.totals import add_up
from faena.job import JobView
from faena.sharding.consistent_read import (
    Seen,
    Sight,
    is_behind,
    look_at,
    read_steadily,
    travelling,
)
from faena.sharding.router import Routers
from faena.states import FINISHED, State
from faena.values.cursor import read_cursor, write_cursor
from faena.values.shards import queue_of
from faena.values.view import View

_POLL_S: Final = 1.0
"""How often a waiter looks for itself: messages may be lost, jobs are not."""


class Page(View, frozen=True):
    """Some jobs of a state; `cursor` asks for the next ones, None when these are the last."""

    jobs: tuple[JobView, ...]
    cursor: str | None


class _Waiter:
    """Somebody who waits for a job's end."""

    def __init__(self) -> None:
        self.notified = asyncio.Event()
        self.trouble: StoreUnavailable | None = None
        """Why nobody knows how the job stands."""
        self.is_seen = False
        """Whether the job was found."""

    def too_late(self, job_id: str, timeout_s: float | None) -> ResultTimeout:
        """What the wait ends with before the job does."""
        words = "it was not cancelled"
        if self.trouble or not self.is_seen:
            words = f"its state is unknown: {self.trouble or 'the broker did not answer in time'}"
        late = f"job {job_id} is not finished after {timeout_s or 0:g} s; {words}"
        return ResultTimeout(late, op="result")


class Inspector:
    """Reads queues and jobs."""

    def __init__(self, engine: Engine, routers: Routers, past: PastJobs | None = None) -> None:
        """`past` has jobs that the broker does not have any more."""
        self._engine = engine
        self._routers = routers
        self._past = past or PastJobs()
        self._explainer = Explainer(engine, routers, self._past)
        self._waiting: dict[tuple[str, str], list[asyncio.Event]] = {}
        self._listening: asyncio.Future[Subscription] | None = None

    async def overview(self, queue: str) -> Overview:
        """Counts, holds, settings and workers of a queue."""
        names = await self._routers.of(queue).names()
        parts = [await self._engine.overview(name) for name in names]
        return parts[0] if len(parts) == 1 else add_up(parts)

    async def job(
        self, queue: str, job_id: str, *, lane: str | None = None, is_past_too: bool = False
    ) -> JobView | None:
        """One job, or None when the queue has no such id; `is_past_too`: nor its history.

        `lane`, here and below, is where to look; None: everywhere.
        """
        _, found = await self._explainer.find(queue, job_id, lane)
        if found:
            return read_job(queue, job_id, found)
        past = self._past.of(queue) if is_past_too else None
        return await past.job(queue, job_id, lane) if past else None

    async def explain(self, queue: str, job_id: str, lane: str | None = None) -> Explanation:
        """Why a job waits, or what became of it."""
        return await self._explainer.explain(queue, job_id, lane)

    async def page(
        self,
        queue: str,
        state: State,
        *,
        limit: int = 50,
        cursor: str | None = None,
        is_newest_first: bool = False,
        source: Source = "both",
    ) -> Page:
        """Jobs of a state, in order of service or of finishing; running ones in order of their ids.

        A lease's end changes while its job runs, and a page by it would show jobs twice. Finished
        jobs that the broker does not have any more come from the history, unless `source` says
        otherwise.
        """
        about = (queue, state.value, is_newest_first)
        after = Position() if cursor is None else _read_cursor(cursor, about)
        wanted = Wanted(queue, state, limit, after, is_newest_first)
        past = self._past.of(queue) if state in FINISHED and source != "broker" else None
        if past is not None:
            return await self._merged(wanted, past, is_broker_too=source == "both")

        async def read(sights: list[Sight]) -> Page:
            page, jobs = await self._live(wanted, sights[0])
            more = write_cursor(about, *page[-1].position) if len(page) >= limit else None
            return Page(jobs=tuple(_each_once(jobs)), cursor=more)

        return await read_steadily([self._routers.of(queue)], read)

    async def _live(self, wanted: Wanted, sight: Sight) -> tuple[list[Seen], list[JobView]]:
        """The positions of a page of the broker's jobs, and those that are still there."""
        queue, state, limit, after, is_newest_first = wanted
        seen = await self._seen(sight, state, limit, after, is_newest_first=is_newest_first)
        page = _first_of(seen, limit, is_newest_first=is_newest_first)
        looks = await look_at(self._engine, sight, page, state.value)
        found = zip(page, looks, strict=True)
        return page, [read_job(queue, one.position.id, look) for one, look in found if look]

    async def _merged(self, wanted: Wanted, past: PastReader, *, is_broker_too: bool) -> Page:
        """A page of the broker's jobs and of past ones, by when they finished.

        The broker is read first: a job that retention removes meanwhile is then seen in both, and
        shown once. A past job that the broker still has, in whatever state, is shown there.
        """
        queue, state, limit, after, is_newest_first = wanted

        async def read(sights: list[Sight]) -> Page:
            page, live = await self._live(wanted, sights[0]) if is_broker_too else ([], [])
            gone = await past.page(queue, state, limit, after, is_newest_first=is_newest_first)
            known = await known_of(self._engine, sights[0], [one.id for one in gone])
            places = [one.position for one in page]
            jobs, last = merged(wanted, places, live, gone, known)
            about = (queue, state.value, is_newest_first)
            return Page(jobs=jobs, cursor=write_cursor(about, *last) if last else None)

        return await read_steadily([self._routers.of(queue)], read)

    async def _seen(
        self, sight: Sight, state: State, limit: int, after: Position, *, is_newest_first: bool
    ) -> list[Seen]:
        """The first jobs behind a position at each shard, and what is on its way from there."""
        seen: list[Seen] = []
        for shard in sight.shards:
            if state is State.RUNNING:
                seen += [Seen(position, shard) for position in await self._running(shard)]
                continue
            found = await self._engine.page(
                shard, state.value, limit, after=(after.id, after.score), is_reverse=is_newest_first
            )
            seen += [Seen(Position(score, job), shard) for job, score in found]
            if sight.is_moving:
                on_the_way = await travelling(self._engine, shard)
                seen += [
                    Seen(one.position, shard, is_travelling=True)
                    for one in on_the_way
                    if one.state == state.value
                ]
        return [one for one in seen if is_behind(one.position, after, is_reverse=is_newest_first)]

    async def _running(self, shard: str) -> list[Position]:
        """All that run at a shard, of which there are no more than workers have slots."""
        ids = scripts.texts(await self._engine.command("ZRANGE", shard, "running", 0, -1))
        return [Position("0", job) for job in ids]

    async def finished(
        self, queue: str, job_id: str, timeout_s: float | None, lane: str | None = None
    ) -> JobView:
        """Wait until a job is finished and return it; an outage of the broker is waited out."""
        waiter = _Waiter()
        waiting = self._waiting.setdefault((queue, job_id), [])
        waiting.append(waiter.notified)
        try:
            with within(None):  # it has a time of its own
                async with asyncio.timeout(timeout_s):
                    return await self._wait(queue, job_id, lane, waiter)
        except TimeoutError:
            raise waiter.too_late(job_id, timeout_s) from waiter.trouble
        finally:
            waiting.remove(waiter.notified)
            if not waiting:
                self._waiting.pop((queue, job_id), None)

    async def _wait(self, queue: str, job_id: str, lane: str | None, waiter: _Waiter) -> JobView:
        await self._listen()
        while True:
            try:
                view = await self._ask_to_be_told(queue, job_id, lane)
            except StoreUnavailable as error:
                if self._engine.wire.is_closed:
                    raise
                view, waiter.trouble = None, error
            else:
                waiter.trouble, waiter.is_seen = None, True
            if view is not None:
                return view
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S):
                    await waiter.notified.wait()
            waiter.notified.clear()

    async def _ask_to_be_told(self, queue: str, job_id: str, lane: str | None) -> JobView | None:
        """The job if it is finished; else its end will be notified."""
        state = await self._routers.of(queue).first(
            lambda shard: self._engine.await_job(shard, job_id),
            is_found=lambda answer: answer != "unknown",
            lane=lane,
        )
        if state == "unknown":
            raise JobNotFound(
                f"no job {job_id} in queue {queue}: it is unknown, or retention removed it",
                op="result",
            )
        view = await self.job(queue, job_id, lane=lane) if state in _FINISHED_WORDS else None
        return view if view is not None and view.state in FINISHED else None

    async def _listen(self) -> None:
        if self._listening is None:
            self._listening = asyncio.ensure_future(self._engine.listen(done=self._notify))
        await asyncio.shield(self._listening)

    def _notify(self, shard: str, job_id: str) -> None:
        for notified in self._waiting.get((queue_of(shard), job_id), ()):
            notified.set()

    async def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            await (await self._listening).close()
            self._listening = None


_FINISHED_WORDS = frozenset(state.value for state in FINISHED)


def _read_cursor(cursor: Any, about: tuple[str, str, bool]) -> Position:
    queue, state, is_newest_first = about
    first = "newest" if is_newest_first else "oldest"
    what = f"a page of {state} jobs of queue {queue}, {first} first"
    read = read_cursor(cursor, about, what)
    return Position(read.score, read.id)


def _first_of(seen: Sequence[Seen], limit: int, *, is_newest_first: bool) -> list[Seen]:
    """So many of them, and those at the position of the last one: another shard may have its id."""
    ranked = sorted(seen, key=lambda one: one.position.key(), reverse=is_newest_first)
    page = ranked[:limit]
    return page + [one for one in ranked[limit:] if one.position.key() == page[-1].position.key()]


def _each_once(jobs: Iterable[JobView]) -> list[JobView]:
    """One that has moved while it was looked for was found twice."""
    return list({(job.id, job.tenant): job for job in jobs}.values())
