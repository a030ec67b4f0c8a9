"""Idempotency records: a handler that may run twice does its work once.

    record = await queue.idempotency.begin(key, owner=job.id)
    if record.is_done:
        return record.result
    result = await charge(...)
    await queue.idempotency.complete(key, result, owner=job.id)

pending → completed (answered from the record for a day) or failed (may be begun again). A pending
record belongs to its owner: the same job, retried, begins again; another job is told to wait.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from faena.duration import Duration, to_ms
from faena.errors import InvalidTransition
from faena.identity import check_key
from faena.runtime import Runtime

Status = Literal["began", "pending", "completed"]

PENDING_TTL: Duration = "1h"
COMPLETED_TTL: Duration = "24h"
FAILED_TTL: Duration = "1h"


class Record(msgspec.Struct, frozen=True):
    """What was found when work was to begin."""

    status: Status
    """began: do the work. pending: another job is at it. completed: it is done."""
    owner: str
    result: Any = None

    @property
    def is_done(self) -> bool:
        """Whether the work was done before."""
        return self.status == "completed"

    @property
    def is_mine(self) -> bool:
        """Whether the caller is to do the work."""
        return self.status == "began"


class Idempotency:
    """The records of one queue."""

    def __init__(self, runtime: Callable[[], Awaitable[Runtime]], queue: str) -> None:
        self._runtime = runtime
        self._queue = queue

    async def begin(self, key: str, *, owner: str, ttl: Duration = PENDING_TTL) -> Record:
        """Claim the work, or learn who has it or what came of it."""
        status, *rest = await self._step(key, "begin", owner, ttl, b"")
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
        self, key: str, result: Any, *, owner: str, ttl: Duration = COMPLETED_TTL
    ) -> None:
        """Keep the result: whoever begins later is answered with it."""
        await self._own(key, "complete", owner, ttl, msgspec.json.encode(result))

    async def fail(self, key: str, reason: str, *, owner: str, ttl: Duration = FAILED_TTL) -> None:
        """Give the work up; anybody may begin it again."""
        await self._own(key, "fail", owner, ttl, msgspec.json.encode(reason))

    async def clear(self, key: str, *, owner: str) -> None:
        """Forget the record."""
        await self._own(key, "clear", owner, PENDING_TTL, b"")

    async def _own(self, key: str, verb: str, owner: str, ttl: Duration, blob: bytes) -> None:
        (answer,) = await self._step(key, verb, owner, ttl, blob)
        if answer == b"NOT_OWNER":
            raise InvalidTransition(f"cannot {verb} {key}: another job owns the record", op=verb)

    async def _step(
        self, key: str, verb: str, owner: str, ttl: Duration, blob: bytes
    ) -> list[bytes]:
        text = check_key("idempotency key", key)
        digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        engine = (await self._runtime()).engine
        args = [digest, verb, owner, max(1, to_ms("ttl", ttl)), blob]
        return await engine.idem(self._queue, args)
