"""Idempotency records: a handler that may run twice does its work once.

    async with queue.idempotency.once(key, job) as record:
        if record.is_done:
            return record.result
        record.result = await charge(...)
    return record.result

A record goes from pending to completed (for a day, its result is returned) or to failed (any job
may begin again). A pending record belongs to the first job of a line of retries: the same job, run
again or retried at the desk, may begin again; other jobs wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, overload

import msgspec

from faena.codec import Codec, codec_for
from faena.errors import FaenaError, InvalidTransition, PayloadError
from faena.job import Job
from faena.options.fields import check_is
from faena.outcomes import Snooze
from faena.values.duration import Duration, to_ms, to_us
from faena.values.ids import BuiltKey, IdempotencyKey, WebhookKey, check_key
from faena.values.names import check_words

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime

Status = Literal["began", "pending", "completed"]
Key: TypeAlias = str | BuiltKey
T = TypeVar("T")

PENDING_TTL: Duration = "1h"
COMPLETED_TTL: Duration = "24h"
FAILED_TTL: Duration = "1h"

_HELD: Final = timedelta(minutes=1)
"""How long a pending record lasts when the process that works no longer extends it."""

_EXTEND_S: Final = 20.0

_LAST_WORDS_S: Final = 2.0
"""How long a stopped attempt may take to release its record: less than its worker waits."""

_log = logging.getLogger("faena.idempotency")


class Record(msgspec.Struct, frozen=True):
    """What `begin` found."""

    status: Status
    """began: do the work. pending: another job is doing it. completed: it is done."""
    owner: str
    result: Any = None

    @property
    def is_done(self) -> bool:
        """Whether the work was done before."""
        return self.status == "completed"

    @property
    def is_mine(self) -> bool:
        """Whether the caller should do the work."""
        return self.status == "began"


class Steps:
    """The script calls on the records of one queue.

    When several attempts of one owner overlap, the last one to begin counts: the record has its
    token.
    """

    def __init__(
        self, runtime: Callable[[], Awaitable[Runtime]], queue: str, *, is_patient: bool = False
    ) -> None:
        """With `is_patient`, calls outlast an outage as a worker's do: finished work is kept."""
        self._runtime = runtime
        self._queue = queue
        self._is_patient = is_patient

    async def begin(self, key: str, owner: str, ttl: Duration, token: str = "") -> list[bytes]:
        """`began`, or the status, owner and result of the existing record."""
        return await self._take(key, "begin", owner, ttl, b"", token)

    async def end(
        self, key: str, verb: str, owner: str, ttl: Duration, blob: bytes = b"", token: str = ""
    ) -> None:
        """Complete, fail, extend or clear; InvalidTransition when another job owns the record."""
        (answer,) = await self._take(key, verb, owner, ttl, blob, token)
        if answer == b"NOT_OWNER":
            raise InvalidTransition(f"cannot {verb} {key}: another job owns the record", op=verb)

    async def _take(
        self, key: str, verb: str, owner: str, ttl: Duration, blob: bytes, token: str
    ) -> list[bytes]:
        check_words("owner", owner)
        digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        ttl_ms = max(1, to_ms("ttl", ttl))
        runtime = await self._runtime()
        engine = runtime.patient_engine if self._is_patient else runtime.engine
        named = {"owner": owner, "ttl_ms": ttl_ms, "blob": blob, "token": token}
        return await engine.idem(self._queue, hash=digest, verb=verb, **named)


class Idempotency:
    """The records of one queue."""

    def __init__(self, runtime: Callable[[], Awaitable[Runtime]], queue: str) -> None:
        self._steps = Steps(runtime, queue)
        self._patient = Steps(runtime, queue, is_patient=True)

    @overload
    def once(
        self, key: Key, job: Job, *, result: type[T], keep: Duration = ..., wait: Duration = ...
    ) -> Once[T]: ...
    @overload
    def once(
        self, key: Key, job: Job, *, result: Any = ..., keep: Duration = ..., wait: Duration = ...
    ) -> Once[Any]: ...
    def once(
        self,
        key: Key,
        job: Job,
        *,
        result: Any = Any,
        keep: Duration = COMPLETED_TTL,
        wait: Duration = "5s",
    ) -> Once[Any]:
        """Do a piece of work once, in an `async with` block; see `Once`.

        While another job does it, this one is snoozed for `wait`. `result` is the type of the
        work's result, which is kept for `keep`.
        """
        check_is("job", job, Job)
        to_us("keep", keep, least_us=1)
        to_us("wait", wait, least_us=1)
        terms = Terms(codec=codec_for(result), keep=keep, wait=wait)
        return Once(self._patient, _text(key), job.origin, terms)

    async def begin(self, key: Key, *, owner: str, ttl: Duration = PENDING_TTL) -> Record:
        """Claim the work, or learn who is doing it, or its result."""
        status, *rest = await self._steps.begin(_text(key), owner, ttl)
        if status == b"began":
            return Record("began", owner)
        holder, blob = rest
        is_done = status == b"completed"
        return Record(
            "completed" if is_done else "pending",
            holder.decode(),
            msgspec.json.decode(blob) if is_done and blob else None,
        )

    async def complete(
        self, key: Key, result: Any, *, owner: str, ttl: Duration = COMPLETED_TTL
    ) -> None:
        """Keep the result for later calls of `begin`. The first result stays."""
        await self._steps.end(_text(key), "complete", owner, ttl, _blob("result", result))

    async def fail(self, key: Key, reason: str, *, owner: str, ttl: Duration = FAILED_TTL) -> None:
        """Give up; any job may begin again."""
        await self._steps.end(_text(key), "fail", owner, ttl, _blob("reason", reason))

    async def clear(self, key: Key, *, owner: str) -> None:
        """Forget the record."""
        await self._steps.end(_text(key), "clear", owner, PENDING_TTL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How work is done once."""

    codec: Codec[Any]
    """Of the result."""
    keep: Duration
    """How long the result is kept."""
    wait: Duration
    """How long a job is snoozed while another one does the work."""


class Once(Generic[T]):
    """Work that is done once, as an `async with` block.

    At the end of the block the record is completed with `result`, or with None if it was not set.
    An exception fails the record, and any job may begin again, unless `result` was set: then the
    work is done. A stopped attempt also fails the record, unless a later attempt has begun; each
    attempt has its own token. After a process dies, its job begins again as soon as it is run
    again, and other jobs when the record was not extended for a minute.
    """

    def __init__(self, steps: Steps, key: str, owner: str, terms: Terms) -> None:
        self._steps = steps
        self._key = key
        self._owner = owner
        self._terms = terms
        self._token = secrets.token_hex(8)
        self._extending: asyncio.Task[None] | None = None
        self._result: Any = None
        self._kept: bytes | None = None
        self.is_done = False
        """Whether the work was done before; `result` is its result."""

    @property
    def result(self) -> T:
        """The result of the work."""
        return self._result

    @result.setter
    def result(self, value: T) -> None:
        if self.is_done:
            raise InvalidTransition(
                f"the work of {self._key} is already done: return record.result when "
                f"record.is_done is true",
                op="complete",
            )
        self._kept = self._terms.codec.encode(value)
        self._result = value

    async def __aenter__(self) -> Self:
        status, *found = await self._steps.begin(self._key, self._owner, _HELD, self._token)
        if status == b"completed":
            self._result, self.is_done = self._terms.codec.decode(found[1] or b"null"), True
        elif status == b"pending":
            raise Snooze(self._terms.wait)
        else:
            self._extending = asyncio.create_task(self._extend())
        return self

    async def _extend(self) -> None:
        while True:
            await asyncio.sleep(_EXTEND_S)
            try:
                await self._steps.end(self._key, "extend", self._owner, _HELD, token=self._token)
            except InvalidTransition:
                _log.warning("another job has begun the work of %s meanwhile", self._key)
                return
            except FaenaError as error:
                _log.warning("could not extend the record of %s: %s", self._key, error)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._extending is None:
            return
        self._extending.cancel()
        if error is not None and self._kept is None:
            await self._give_up(type(error).__name__)
        else:
            await self._complete()

    async def _complete(self) -> None:
        """Finishes even if the attempt is stopped meanwhile: the work is done."""
        blob = self._kept or b"null"
        telling = asyncio.ensure_future(
            self._steps.end(self._key, "complete", self._owner, self._terms.keep, blob)
        )
        try:
            await asyncio.shield(telling)
        except asyncio.CancelledError:
            await asyncio.wait([telling], timeout=_LAST_WORDS_S)
            telling.cancel()
            raise
        except InvalidTransition:
            _log.warning(
                "another job began the work of %s before it was done; it may have been done twice",
                self._key,
            )

    async def _give_up(self, reason: str) -> None:
        """If this is not possible in time, the record expires."""
        with contextlib.suppress(FaenaError, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                blob = msgspec.json.encode(reason)
                await self._steps.end(self._key, "fail", self._owner, FAILED_TTL, blob, self._token)


def _blob(what: str, value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise PayloadError(f"{what} must be a JSON value: {error}", op="encode") from None


def _text(key: Key) -> str:
    is_built = isinstance(key, IdempotencyKey | WebhookKey)
    return check_key("idempotency key", str(key) if is_built else key)
