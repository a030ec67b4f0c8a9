"""The code of a child process: find the task, call its handler, answer in bytes.

Runs only in children of `Processes`. An exception of a handler is sent as a description.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from faena.declaring.handler import Handler, Unfit
from faena.errors import ConfigError, PayloadError
from faena.job import Job, Spec
from faena.options.costs import check_used
from faena.resilience.lending import Borrower, Loan, Returned
from faena.resilience.permits import CURRENT
from faena.telemetry.logging.bound import BOUND
from faena.telemetry.logging.setup import LogSetup, configure
from faena.telemetry.tracing.choice import carried, continued
from faena.worker.execute.batch import endings_of
from faena.worker.execute.remote_errors import Failure, describe

LONGEST_DATAGRAM = 65_536
"""Bytes that the worker reads of one note; the bounds below leave room for its frame."""

_LONGEST_PROGRESS = 60_000
_LONGEST_LINE = 4096


@dataclass(frozen=True, slots=True)
class Item:
    """One job of a call."""

    queue: str
    job_id: str
    origin: str
    max_attempts: int
    enqueued_us: int
    started_us: int
    payload: bytes
    spec: bytes
    attempt: int
    token: int
    """Identifies the attempt: two attempts at the same time may have the same job id."""
    worker: str

    @classmethod
    def of(cls, job: Job, payload: Any, token: int) -> Item:
        """Describe a job."""
        spec = Spec(
            task=job.task,
            tenant=job.tenant,
            key=job.key,
            headers=dict(job.headers),
            parents=dict(job.parents),
            group=dict(job.group),
        )
        return cls(
            queue=job.queue,
            job_id=job.id,
            origin=job.origin,
            max_attempts=job.max_attempts,
            enqueued_us=job.enqueued_us,
            started_us=job.started_us,
            payload=payload or b"null",
            spec=msgspec.json.encode(spec),
            attempt=job.attempt,
            token=token,
            worker=job.worker,
        )


@dataclass(frozen=True, slots=True)
class Order:
    """One call, in values that any process can read."""

    module: str
    qualname: str
    items: tuple[Item, ...]
    """One item, or all of a batch."""
    loan: Loan | None = None
    """The permit of a job that calls upstreams."""
    trace: Mapping[str, str] | None = None
    """The span of the attempt, as headers; None or empty if it has none."""

    @classmethod
    def of(cls, handler: Handler, items: Sequence[Item], loan: Loan | None) -> Order:
        """Describe a call."""
        function = handler.function
        where = function.__module__, function.__qualname__
        return cls(*where, tuple(items), loan, carried())


class Told(NamedTuple):
    """The answer to a call with a loan."""

    reply: Any
    """What it would be without one."""
    returned: Returned


class Note(NamedTuple):
    """The content of a datagram: progress as JSON, a log line, or used costs."""

    token: int
    progress: bytes = b""
    line: bytes = b""
    used: dict[str, int] | None = None


class _Post:
    """Sends notes to the worker, one datagram each."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def send(self, note: Note) -> None:
        with contextlib.suppress(OSError):  # the worker is gone: a lost note must not fail a job
            self._socket.sendto(msgspec.msgpack.encode(note), self._path)


class _CallNotes:
    """The notes of one call; values that the worker could not read are refused here."""

    def __init__(self, post: _Post, token: int) -> None:
        self._post = post
        self._token = token

    def progress(self, job_id: str, value: Any) -> None:  # noqa: ARG002 - the token says more
        try:
            encoded = msgspec.json.encode(value)
        except (TypeError, ValueError) as error:
            message = f"progress must be a JSON value, got {type(value).__name__}"
            raise PayloadError(message, op="progress") from error
        if len(encoded) > _LONGEST_PROGRESS:
            raise PayloadError(
                f'progress of a job with run="process" must be at most {_LONGEST_PROGRESS} '
                f"bytes, got {len(encoded)}",
                op="progress",
            )
        self._post.send(Note(self._token, progress=encoded))

    def log(self, job_id: str, line: str) -> None:  # noqa: ARG002 - the token says more
        text = str(line)[:_LONGEST_LINE].encode("utf-8", "backslashreplace")
        self._post.send(Note(self._token, line=text))

    def spend(self, job_id: str, used: Mapping[str, Any]) -> None:  # noqa: ARG002 - as above
        self._post.send(Note(self._token, used=dict(check_used(used))))


_post: list[_Post] = []  # set once per child, before any call


def begin(path: str, parent: int, log: LogSetup | None) -> None:
    """Prepare a child: connect the socket for its notes, log as its worker does, and make it exit
    when that dies."""
    if log is not None:
        configure(*log)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the worker's to handle
    _post.append(_Post(path))
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def call(order: Order) -> Any:
    """Run a call: result bytes or None, a list of endings for a batch, a Failure if it raised.

    With a loan, a Told of that and of the calls to upstreams.
    """
    borrower: Borrower | None = None
    raised: BaseException | None = None
    try:
        handler = _find(order)
        jobs = [_job(item) for item in order.items]
        payloads = [_payload(handler, item) for item in order.items]
        if order.loan is not None:
            borrower = Borrower(order.loan, handler.upstreams)
        CURRENT.set(borrower)
        BOUND.set(jobs[0] if handler.batch is None else jobs)
        with continued(order.trace or {}):
            reply = _reply(handler, payloads, jobs)
    except BaseException as error:  # noqa: BLE001 - sent to the worker, which handles it
        raised, reply = error, describe(error)
    finally:
        CURRENT.set(None)
        BOUND.set(None)
    if order.loan is None:
        return reply
    return Told(reply, borrower.returned(raised) if borrower else Returned())


def _reply(handler: Handler, payloads: Sequence[Any], jobs: Sequence[Job]) -> Any:
    if handler.batch is None:
        return _ending(handler, _called(handler, payloads[0], jobs[0]))
    endings = endings_of(_called(handler, payloads, jobs), len(jobs))
    return [_ending(handler, one) for one in endings]


def _job(item: Item) -> Job:
    spec = msgspec.json.decode(item.spec, type=Spec)
    spec.payload = msgspec.Raw(item.payload)
    job = Job(item.queue, item.job_id, spec, attempt=item.attempt)
    job.origin = item.origin
    job.max_attempts = item.max_attempts
    job.worker = item.worker
    job.enqueued_us, job.started_us = item.enqueued_us, item.started_us
    job.attach(_CallNotes(_post[0], item.token))
    return job


def _payload(handler: Handler, item: Item) -> Any:
    return handler.payload.decode(item.payload) if handler.payload is not None else None


def _called(handler: Handler, payload: Any, job: Job | Sequence[Job]) -> Any:
    return handler.function(*handler.arguments(payload, job))


def _ending(handler: Handler, value: Any) -> bytes | Unfit | Failure | None:
    """The ending of one job: its encoded result, or why there is none."""
    if isinstance(value, BaseException) and handler.batch is not None:
        return describe(value)
    return None if value is None else handler.encoded(value)


def _find(order: Order) -> Handler:
    found: Any = importlib.import_module(order.module)
    for name in order.qualname.split("."):
        found = getattr(found, name)
    handler = getattr(found, "handler", None)
    if handler is None:
        raise ConfigError(
            f"{order.module}.{order.qualname} must be the decorated task, because a child process "
            f"imports it by that name, got a {type(found).__name__}"
        )
    return handler
