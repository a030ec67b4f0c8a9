"""One job for a reader, put together of what a shard has stored of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from faena.engine import envelope
from faena.engine.scripts import Look
from faena.job import JobView, Spec
from faena.outcomes import ErrorRecord
from faena.states import FINISHED, State
from faena.values.ids import made_at_us

_error_decoder = msgspec.json.Decoder(ErrorRecord)
_UNREADABLE: Final = Spec(task="")


def read_job(queue: str, job_id: str, look: Look) -> JobView:  # size: a line a field
    """Put together what the columns say of one job."""
    state, at, info = State(look.state), int(float(look.score)), look.info
    told = envelope.spec_in(look.spec)
    spec, priority = (told, envelope.priority_of(look.spec)) if told else (_UNREADABLE, 0)
    mark: Mapping[str, Any] = msgspec.msgpack.decode(look.mark) if look.mark else {}
    started_at, worker = _claim(look.lease)
    errors = tuple(_error_decoder.decode(text) for text in _numbered(info, "error"))
    parked, parked_reason = mark.get("y") or (0, None)
    fallback, _, handed_to = mark.get("f", "").partition(" ")
    return JobView(
        id=job_id,
        queue=queue,
        state=state,
        task=spec.task,
        is_unreadable=told is None,
        part_of=None if told is None else _part_of(look.spec),
        payload=spec.payload,
        tenant=spec.tenant,
        key=spec.key,
        priority=mark.get("p") or priority,
        headers=spec.headers,
        attempts_made=mark.get("a", 0) + (state is State.COMPLETED),
        losses=mark.get("l", 0),
        created_at=None if envelope.has_own_id(look.spec) else made_at_us(job_id),
        enqueued_at=look.enqueued_at,
        due_at=at if state is State.DELAYED else None,
        lease_until=at if state is State.RUNNING else None,
        started_at=started_at or _last_started(state, errors),
        worker=worker,
        finished_at=at if state in FINISHED else None,
        is_stopping=bool(mark.get("c")) and state is State.RUNNING,
        result=look.result or None,
        errors=errors,
        progress=msgspec.json.decode(info["progress"]) if "progress" in info else None,
        log=tuple(text.decode() for text in _numbered(info, "log")),
        origin=mark.get("o") or job_id,
        retry_of=mark.get("b"),
        snoozes=mark.get("k", 0),
        snooze_reason=mark.get("r") or None,
        parked=parked,
        parked_reason=parked_reason,
        fallback=fallback or None,
        handed_to=handed_to or None,
        auto_retries=mark.get("x", 0),
        max_attempts=spec.retry.attempts if spec.retry else spec.attempts,
    )


_KINDS: Final = {"f": "flow", "g": "group"}


def _part_of(spec: bytes) -> str | None:
    """Its flow or group, whom its end is told."""
    kind, _, rest = envelope.facts_in(spec).get("tells", "").partition(":")
    named = rest.split(":")
    return f"{_KINDS[kind]} {'/'.join(named[:2])}" if kind in _KINDS and named[1:] else None


def _claim(record: bytes) -> tuple[int | None, str | None]:
    if not record:
        return None, None
    _, started_at, worker, *_ = record.split()
    return int(started_at), worker.decode()


def _last_started(state: State, errors: Sequence[ErrorRecord]) -> int | None:
    """When the last attempt that failed began; a completed job has made another one since."""
    return (errors[-1].started_at or None) if errors and state is not State.COMPLETED else None


def _numbered(info: Mapping[str, bytes], kind: str) -> list[bytes]:
    """The lines `kind:1`, `kind:2`, … in order."""
    stem = f"{kind}:"
    numbers = sorted(int(name[len(stem) :]) for name in info if name.startswith(stem))
    return [info[f"{stem}{number}"] for number in numbers]
