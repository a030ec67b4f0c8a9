"""The read side: counts, jobs and pages of jobs, and the wait for a result. Changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from faena.engine import Engine, envelope, scripts
from faena.engine.subscription import Subscription
from faena.errors import ConfigError, JobNotFound, ResultTimeout
from faena.explanation import Explanation, read_explanation
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


class Inspector:
    """Reads queues and jobs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: dict[tuple[str, str], list[asyncio.Event]] = {}
        self._listening: asyncio.Future[Subscription] | None = None

    async def overview(self, queue: str) -> Overview:
        """Counts, holds, settings and workers of a queue."""
        now, counts, holds, conf, clock, workers, _ = await self._engine.overview(queue)
        totals = scripts.pairs(clock)
        return Overview(
            queue=queue,
            at=now,
            counts=scripts.pairs(counts),
            holds=tuple(_hold(name, text) for name, text in scripts.pairs(holds).items()),
            settings={
                name: value.decode()
                for name, value in scripts.pairs(conf).items()
                if name != "digest"
            },
            workers=tuple(scripts.texts(workers[::2])),
            enqueued=int(totals.get("enqueued", 0)),
            removed=int(totals.get("removed", 0)),
        )

    async def job(self, queue: str, job_id: str) -> JobView | None:
        """One job, or None when the queue has no such id."""
        (found,) = await self._engine.look(queue, [job_id])
        return read_job(queue, job_id, found) if found else None

    async def explain(self, queue: str, job_id: str) -> Explanation:
        """Why a job waits."""
        return read_explanation(queue, job_id, await self._engine.explain(queue, job_id))

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
        places = await self._engine.page(
            queue, state.value, limit, after=after, is_reverse=is_newest_first
        )
        looks = await self._engine.look(queue, [job for job, _ in places]) if places else []
        jobs = [
            read_job(queue, place[0], look)
            for place, look in zip(places, looks, strict=True)
            if look
        ]
        more = f"{state.value}/{places[-1][1]}/{places[-1][0]}" if len(places) == limit else None
        return Page(jobs=tuple(jobs), cursor=more)

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
            state = await self._engine.await_job(queue, job_id)
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
            self._listening = asyncio.ensure_future(self._engine.listen("done", self._tell))
        await asyncio.shield(self._listening)

    def _tell(self, queue: str, job_id: str) -> None:
        for told in self._waiting.get((queue, job_id), ()):
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
