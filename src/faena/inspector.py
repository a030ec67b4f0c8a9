"""The read side: counts, jobs and pages of jobs, and the wait for a result. Changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine import Engine, envelope, scripts
from faena.engine.subscription import Subscription
from faena.errors import ConfigError, JobNotFound, ResultTimeout
from faena.estate import Estate
from faena.explanation import Explanation, Past, read_explanation
from faena.homes import queue_of
from faena.job import JobView, Spec
from faena.outcomes import ErrorRecord
from faena.states import FINISHED, State

_POLL_S: Final = 1.0
"""How often a waiter looks for itself: messages may be lost, jobs are not."""

_spec_decoder = msgspec.json.Decoder(Spec)
_error_decoder = msgspec.json.Decoder(ErrorRecord)


class Hold(msgspec.Struct, frozen=True):
    """Why a queue is not served."""

    reason: str
    until: int | None
    """Server microseconds; None until it is released."""
    by: str
    since: int


class Overview(msgspec.Struct, frozen=True):
    """A queue at one instant."""

    queue: str
    at: int
    counts: dict[str, int]
    """Jobs per state; `dead` are those that nobody has dealt with."""
    dealt_with: dict[str, int]
    """Dead jobs that were retried, discarded or resolved; they stay until retention ends."""
    holds: tuple[Hold, ...]
    settings: dict[str, str]
    workers: tuple[str, ...]
    enqueued: int
    """Jobs taken in since the queue exists."""
    removed: int
    """Jobs that retention, cleaning or replacement took out."""


class Page(msgspec.Struct, frozen=True):
    """Some jobs of a state; `cursor` asks for the next ones, None when these are the last."""

    jobs: tuple[JobView, ...]
    cursor: str | None


class _Place(NamedTuple):
    """Where a job of a page stands."""

    score: float
    job: str
    text: str
    """The score as the server wrote it."""
    home: str


class Inspector:
    """Reads queues and jobs."""

    def __init__(self, engine: Engine, estate: Estate) -> None:
        self._engine = engine
        self._estate = estate
        self._waiting: dict[tuple[str, str], list[asyncio.Event]] = {}
        self._listening: asyncio.Future[Subscription] | None = None

    async def overview(self, queue: str) -> Overview:
        """Counts, holds, settings and workers of a queue."""
        names = await self._estate.of(queue).names()
        parts = [_read_overview(queue, await self._engine.overview(name)) for name in names]
        return parts[0] if len(parts) == 1 else _add_up(parts)

    async def job(self, queue: str, job_id: str) -> JobView | None:
        """One job, or None when the queue has no such id."""
        _, found = await self._find(queue, job_id)
        return read_job(queue, job_id, found) if found else None

    async def _find(self, queue: str, job_id: str) -> tuple[str, Sequence[Any]]:
        """The home that has a job and what it knows of it, which is nothing where none has."""

        async def look(home: str) -> tuple[str, Sequence[Any]]:
            (found,) = await self._engine.look(home, [job_id])
            return home, found

        return await self._estate.of(queue).first(look, is_found=lambda answer: bool(answer[1]))

    async def explain(self, queue: str, job_id: str) -> Explanation:
        """Why a job waits, or what became of it."""
        home = queue
        if len(await self._estate.of(queue).names()) > 1:
            home, _ = await self._find(queue, job_id)
        told = read_explanation(queue, job_id, await self._engine.explain(home, job_id))
        if told.is_waiting or told.state is None:
            return told
        view = await self.job(queue, job_id)
        if view is None or view.state is not told.state:  # it has gone on meanwhile
            return told
        return msgspec.structs.replace(told, past=_past(view))

    async def page(
        self,
        queue: str,
        state: State,
        *,
        limit: int = 50,
        cursor: str | None = None,
        is_newest_first: bool = False,
    ) -> Page:
        """Jobs of a state, in order of service or of finishing."""
        after = read_cursor(cursor, state) if cursor else ("", "")
        found: list[_Place] = []
        for home in await self._estate.of(queue).names():
            places = await self._engine.page(
                home, state.value, limit, after=after, is_reverse=is_newest_first
            )
            found += [_Place(float(score), job, score, home) for job, score in places]
        found = sorted(found, reverse=is_newest_first)[:limit]
        looks = await self._look_at(found)
        jobs = [read_job(queue, one.job, looks[one.job]) for one in found if looks.get(one.job)]
        more = f"{state.value}/{found[-1].text}/{found[-1].job}" if len(found) == limit else None
        return Page(jobs=tuple(jobs), cursor=more)

    async def _look_at(self, places: Sequence[_Place]) -> dict[str, Sequence[Any]]:
        """What is known of jobs that were seen in their homes."""
        by_home: dict[str, list[str]] = {}
        for place in places:
            by_home.setdefault(place.home, []).append(place.job)
        looks: dict[str, Sequence[Any]] = {}
        for home, ids in by_home.items():
            looks |= zip(ids, await self._engine.look(home, ids), strict=True)
        return looks

    async def finished(self, queue: str, job_id: str, timeout_s: float | None) -> JobView:
        """Wait until a job is finished and return it."""
        told = asyncio.Event()
        waiting = self._waiting.setdefault((queue, job_id), [])
        waiting.append(told)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._wait(queue, job_id, told)
        except TimeoutError:
            message = f"job {job_id} is not finished after {timeout_s:g} s; it goes on"
            raise ResultTimeout(message, op="result") from None
        finally:
            waiting.remove(told)
            if not waiting:
                self._waiting.pop((queue, job_id), None)

    async def _wait(self, queue: str, job_id: str, told: asyncio.Event) -> JobView:
        await self._listen()
        while True:
            state = await self._estate.of(queue).first(
                lambda home: self._engine.await_job(home, job_id),
                is_found=lambda answer: answer != "unknown",
            )
            view = await self.job(queue, job_id) if state in _FINISHED_WORDS else None
            if view is not None and view.state in FINISHED:
                return view
            if state == "unknown":
                raise JobNotFound(
                    f"no job {job_id} in queue {queue}: it is unknown, or retention removed it",
                    op="result",
                )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(told.wait(), _POLL_S)
            told.clear()

    async def _listen(self) -> None:
        if self._listening is None:
            self._listening = asyncio.ensure_future(self._engine.listen(done=self._tell))
        await asyncio.shield(self._listening)

    def _tell(self, home: str, job_id: str) -> None:
        for told in self._waiting.get((queue_of(home), job_id), ()):
            told.set()

    async def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            await (await self._listening).close()
            self._listening = None


_FINISHED_WORDS = frozenset(state.value for state in FINISHED)


def read_cursor(cursor: str, state: State) -> tuple[str, str]:
    """The place a cursor names; it belongs to one state."""
    parts = cursor.split("/", 2)
    if len(parts) != 3 or parts[0] != state.value:
        raise ConfigError(
            f"cursor must come from a page of {state.value} jobs, got {cursor!r}",
            field="cursor",
            value=cursor,
        )
    return parts[2], parts[1]


def _past(view: JobView) -> Past:
    """What is known of a job that does not wait."""
    last = view.errors[-1] if view.errors else None
    return Past(
        at=view.finished_at or view.claimed_at,
        attempts=view.attempts,
        losses=view.losses,
        worker=view.worker,
        error=f"{last.name}: {last.message}".split("\n")[0] if last else None,
    )


def _read_overview(queue: str, reply: Sequence[Any]) -> Overview:
    now, counts, holds, conf, clock, workers, _, dealt = reply
    totals = scripts.pairs(clock)
    return Overview(
        queue=queue,
        at=now,
        counts=scripts.pairs(counts),
        dealt_with=scripts.pairs(dealt),
        holds=tuple(_hold(name, text) for name, text in scripts.pairs(holds).items()),
        settings={
            name: value.decode() for name, value in scripts.pairs(conf).items() if name != "digest"
        },
        workers=tuple(scripts.texts(workers[::2])),
        enqueued=int(totals.get("enqueued", 0)),
        removed=int(totals.get("removed", 0)),
    )


def _add_up(parts: Sequence[Overview]) -> Overview:
    """One queue out of its homes, which share their settings and hear of the same holds."""
    first = parts[0]
    holds = {hold.reason: hold for part in parts for hold in part.holds}
    return msgspec.structs.replace(
        first,
        counts=_sums([part.counts for part in parts]),
        dealt_with=_sums([part.dealt_with for part in parts]),
        holds=tuple(holds.values()),
        workers=tuple(dict.fromkeys(name for part in parts for name in part.workers)),
        enqueued=sum(part.enqueued for part in parts),
        removed=sum(part.removed for part in parts),
    )


def _sums(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def _hold(reason: str, text: bytes) -> Hold:
    until, by, since = text.decode().split(" ")
    return Hold(reason=reason, until=int(until) or None, by=by, since=int(since))


def read_job(queue: str, job_id: str, look: Sequence[Any]) -> JobView:
    """Put together what the columns say of one job."""
    word, score, sealed, packed, record, result, info_pairs = look
    state = State(word.decode())
    spec = _spec_decoder.decode(envelope.body_of(sealed))
    mark: Mapping[str, Any] = msgspec.msgpack.decode(packed) if packed else {}
    info = scripts.pairs(info_pairs)
    claimed_at, worker = _claim(record)
    at = int(float(score))
    return JobView(
        id=job_id,
        queue=queue,
        state=state,
        task=spec.task,
        payload=spec.payload,
        tenant=spec.tenant,
        key=spec.key,
        priority=mark.get("p") or envelope.priority_of(sealed),
        headers=spec.headers,
        attempts=mark.get("a", 0),
        losses=mark.get("l", 0),
        due_at=at if state is State.DELAYED else None,
        lease_until=at if state is State.RUNNING else None,
        claimed_at=claimed_at,
        worker=worker,
        finished_at=at if state in FINISHED else None,
        is_stopping=bool(mark.get("c")) and state is State.RUNNING,
        result=result or None,
        errors=tuple(_error_decoder.decode(text) for text in _numbered(info, "error")),
        progress=msgspec.json.decode(info["progress"]) if "progress" in info else None,
        log=tuple(text.decode() for text in _numbered(info, "log")),
        origin=mark.get("o"),
        retry_of=mark.get("b"),
        auto_retries=mark.get("x", 0),
    )


def _claim(record: bytes) -> tuple[int | None, str | None]:
    if not record:
        return None, None
    _, claimed_at, worker, *_ = record.split()
    return int(claimed_at), worker.decode()


def _numbered(info: Mapping[str, bytes], kind: str) -> list[bytes]:
    """The lines `kind:1`, `kind:2`, … in order."""
    stem = f"{kind}:"
    numbers = sorted(int(name[len(stem) :]) for name in info if name.startswith(stem))
    return [info[f"{stem}{number}"] for number in numbers]
