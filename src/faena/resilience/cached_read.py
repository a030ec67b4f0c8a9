"""Reads that a cache on the broker answers when the source is slow or down.

    found = await app.cached_read("org/9", load_org, fresh="5m", stale="1h")

A value younger than `fresh` is returned without a call. One younger than `stale` is returned at
once, and read anew behind. An older one, or none, is waited for. One reader in all processes calls
the source at a time: it holds a lease, which ends by itself when its process is killed.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypedDict, TypeVar

from faena.codec import Codec, codec_for
from faena.engine import Engine
from faena.engine.calls import cached
from faena.engine.calls.cached import Found
from faena.engine.wire.patience import within
from faena.errors import (
    ConfigError,
    FaenaError,
    PayloadError,
    SourceUnavailable,
    StoreUnavailable,
    shown,
)
from faena.options.fields import check_is, derive
from faena.resilience.permits import CURRENT
from faena.resilience.upstream import Upstream
from faena.values.duration import Duration, to_us
from faena.values.names import check_label
from faena.values.view import View

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime

T = TypeVar("T")

MOST_BYTES: Final = 1_048_576
_BROKER_WITHIN_S: Final = 1.0
"""How long to try to reach the broker before the source is asked without it."""
_MARGIN_US: Final = 1_000_000
"""How much longer than a read the lease of its reader lasts."""
_PAUSE_US: Final = 1_000_000
"""How long no process calls a source that has failed."""
_FIRST_LOOK_S, _LAST_LOOK_S = 0.02, 0.25

_log = logging.getLogger("faena.resilience")


class CachedValue(View, Generic[T], frozen=True, kw_only=True):
    """What was read, now or earlier."""

    value: T
    age: float
    """How many seconds ago it was asked for."""
    is_stale: bool
    """Whether it is older than `fresh`: the source is being asked, or could not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTerms:
    """How a value is read and kept."""

    key: str
    fresh: Duration = "5m"
    """How long a value is returned without a call."""
    stale: Duration = "1h"
    """How long it is returned when the source is slow or down; at least `fresh`."""
    timeout: Duration = "5s"
    """How long the source may take."""
    upstream: Upstream | None = None
    """What is called, so that its breaker and limits apply."""
    tenant: str | None = None
    """Whose value it is; tenants do not see each other's."""
    result: Any = Any
    """The type of the value."""

    codec: Codec[Any] = field(init=False, repr=False, compare=False)
    fresh_us: int = field(init=False, repr=False, compare=False)
    stale_us: int = field(init=False, repr=False, compare=False)
    timeout_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_label("key", self.key)
        if self.tenant is not None:
            check_label("tenant", self.tenant)
        if self.upstream is not None:
            check_is("upstream", self.upstream, Upstream)
        derive(self, "codec", codec_for(self.result))
        derive(self, "fresh_us", to_us("fresh", self.fresh))
        derive(self, "stale_us", to_us("stale", self.stale, least_us=1_000))
        derive(self, "timeout_us", to_us("timeout", self.timeout, least_us=1_000))
        if self.stale_us < self.fresh_us:
            raise ConfigError(
                f"stale must be at least fresh ({self.fresh}), got {shown(self.stale)}",
                field="stale",
                value=self.stale,
            )

    @property
    def shard(self) -> str:
        """Where its value lives: a slot of its own. No queue can have this name."""
        text = f"{self.tenant or ''} {self.key}"
        return f"@cached-{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"


class ReadFields(TypedDict, total=False):
    """The terms of a read; see `ReadTerms`."""

    fresh: Duration
    stale: Duration
    timeout: Duration
    upstream: Upstream
    tenant: str
    result: Any


async def cached_read(
    runtime: Callable[[], Awaitable[Runtime]], terms: ReadTerms, fetch: Callable[[], Awaitable[T]]
) -> CachedValue[T]:
    """The value, as the terms have it; without a broker, what the source says."""
    if not callable(fetch):
        raise ConfigError(
            f"fetch must be a function that returns an awaitable, got {shown(fetch)}",
            field="fetch",
            value=fetch,
        )
    try:
        with within(min(terms.timeout_us / 1e6, _BROKER_WITHIN_S)):
            reads = (await runtime()).reads
    except StoreUnavailable as error:
        _log.warning("%s is read without a cache: %s", terms.key, error)
        at = time.monotonic()
        blob = _encoded(terms, await _fetched(terms, fetch))
        return _value(terms, blob, time.monotonic() - at, is_stale=False)
    return await reads.read(terms, fetch)


class _Read(NamedTuple):
    """What a read brought."""

    blob: bytes
    at: float
    """The monotonic instant from which its age counts."""


class CachedReads:
    """The reads of one event loop; those of the same value share one call."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reading: dict[str, asyncio.Task[_Read]] = {}
        self._tasks: set[asyncio.Task[_Read]] = set()

    async def read(self, terms: ReadTerms, fetch: Callable[[], Awaitable[T]]) -> CachedValue[T]:
        """The value, as the terms have it."""
        token = secrets.token_hex(8)
        found = await self._look(terms, token)
        reading, is_stale = self._reading.get(terms.shard), found.status != "fresh"
        is_good = found.age_us >= 0 and (not is_stale or found.age_us < terms.stale_us)
        is_awaited = reading is None and not is_good and found.status in {"busy", "gone"}
        if found.status == "lease" or is_awaited:
            reading = self._begin(terms, fetch, token, found.status)
        if is_good:
            return _value(terms, found.blob, found.age_us / 1e6, is_stale=is_stale)
        if reading is None:
            raise SourceUnavailable(_unread(terms, found.failure))
        read = await asyncio.shield(reading)
        return _value(terms, read.blob, max(0.0, time.monotonic() - read.at), is_stale=False)

    async def close(self) -> None:
        """Give up what is being read; leases end by themselves."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _look(self, terms: ReadTerms, token: str) -> Found:
        """Look and ask for the lease; without a broker, the source is asked anyway."""
        lease_us = terms.timeout_us + _MARGIN_US
        try:
            with within(min(terms.timeout_us / 1e6, _BROKER_WITHIN_S)):
                return await cached.look(
                    self._engine, terms.shard, token, fresh_us=terms.fresh_us, lease_us=lease_us
                )
        except StoreUnavailable as error:
            _log.warning("%s is read without a cache: %s", terms.key, error)
            return Found("gone", b"", -1, "")

    # -- reading ------------------------------------------------------------------------------

    def _begin(
        self, terms: ReadTerms, fetch: Callable[[], Awaitable[Any]], token: str, status: str
    ) -> asyncio.Task[_Read]:
        token = token if status == "lease" else ""
        reading = self._wait(terms, fetch) if status == "busy" else self._read(terms, fetch, token)
        context = copy_context()
        context.run(CURRENT.set, None)  # it may outlive the job that has begun it
        task = asyncio.create_task(reading, context=context)
        shard = terms.shard
        self._reading.setdefault(shard, task)
        self._tasks.add(task)

        def ended(_task: asyncio.Task[_Read]) -> None:
            self._tasks.discard(task)
            if self._reading.get(shard) is task:
                del self._reading[shard]
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.warning("%s", _unread(terms, _why(terms, error)))

        task.add_done_callback(ended)
        return task

    async def _read(
        self, terms: ReadTerms, fetch: Callable[[], Awaitable[Any]], token: str
    ) -> _Read:
        """Call the source, and keep what it returns, if the reader has a lease."""
        at = time.monotonic()
        try:
            blob = _encoded(terms, await _fetched(terms, fetch))
        except Exception as error:
            words = _why(terms, error)[:500]
            if token:
                await _tried(cached.fail(self._engine, terms.shard, token, words, _PAUSE_US))
            raise
        if token:
            keep_us = terms.stale_us + _MARGIN_US
            await _tried(cached.store(self._engine, terms.shard, token, blob, keep_us))
        return _Read(blob, at)

    async def _wait(self, terms: ReadTerms, fetch: Callable[[], Awaitable[Any]]) -> _Read:
        """Another process reads it; if that is killed, its lease ends and the read begins here."""
        token, pause_s = secrets.token_hex(8), _FIRST_LOOK_S
        until = time.monotonic() + terms.timeout_us / 1e6
        while time.monotonic() < until:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LAST_LOOK_S)
            found = await self._look(terms, token)
            if found.status in {"lease", "gone"}:
                return await self._read(terms, fetch, token if found.status == "lease" else "")
            if found.status == "failed":
                raise SourceUnavailable(_unread(terms, found.failure))
            if found.status == "fresh":
                return _Read(found.blob, time.monotonic() - found.age_us / 1e6)
        raise SourceUnavailable(_unread(terms, f"no answer within {terms.timeout}"))


def _unread(terms: ReadTerms, why: str) -> str:
    return f"{terms.key} cannot be read: {why}"


def _why(terms: ReadTerms, error: BaseException) -> str:
    """An error, in words that `_unread` goes before: one of ours has them already."""
    if isinstance(error, SourceUnavailable):
        return str(error).removeprefix(_unread(terms, ""))
    return f"{type(error).__name__}: {error}"


async def _tried(telling: Awaitable[None]) -> None:
    """What was read is returned, whether or not it could be kept."""
    try:
        await telling
    except FaenaError as error:
        _log.warning("a value that was read could not be kept: %s", error)


async def _fetched(terms: ReadTerms, fetch: Callable[[], Awaitable[Any]]) -> Any:
    """What the source says, within its time."""
    limit = asyncio.timeout(terms.timeout_us / 1e6)
    try:
        async with limit:
            if terms.upstream is None:
                return await _awaited(fetch())
            async with terms.upstream.call(tenant=terms.tenant):
                return await _awaited(fetch())
    except TimeoutError as error:
        if not limit.expired():
            raise
        words = _unread(terms, f"no answer within {terms.timeout}")
        raise SourceUnavailable(words) from error


async def _awaited(value: Any) -> Any:
    if not inspect.isawaitable(value):
        raise ConfigError(
            f"fetch must return an awaitable, got {shown(value)}; is it an async def?",
            field="fetch",
        )
    return await value


def _encoded(terms: ReadTerms, value: Any) -> bytes:
    blob = terms.codec.encode(value)
    if len(blob) > MOST_BYTES:
        raise PayloadError(
            f"the value of {terms.key} must be at most {MOST_BYTES} bytes, got {len(blob)}",
            op="cached_read",
        )
    return blob


def _value(terms: ReadTerms, blob: bytes, age: float, *, is_stale: bool) -> CachedValue[Any]:
    return CachedValue(value=terms.codec.decode(blob), age=age, is_stale=is_stale)
