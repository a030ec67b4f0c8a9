"""What is done instead when an upstream takes no calls, or when a job's attempts are used up.

    fallback=canned_answer                      a function: what it returns is the job's result
    fallback=Escalate(attend)                   a job for a person; see `escalation.py`
    fallback=Manual("Invoice at …")             a dead letter that says what to do by hand
    fallback=slow_answer                        another task, with the same payload
    fallback=Fallback(canned_answer, after="30s", when="unavailable")

A fallback has none of its own, and is used once: where it fails, the job is dead.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Final, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from faena.engine import Engine
from faena.engine.calls.resilience import SHARD
from faena.errors import ConfigError, FaenaError, FallbackFailed, shown
from faena.options.fields import check_choice, check_is, derive
from faena.outcomes import UpstreamUnavailable
from faena.resilience.call import UpstreamCall
from faena.resilience.sorting import Sorted
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_fields

P = ParamSpec("P")
R = TypeVar("R")

When: TypeAlias = Literal["either", "unavailable", "exhausted"]

WHENS: Final = ("either", "unavailable", "exhausted")
PACING: Final = frozenset({"limit", "tenant_limit", "rate_limited", "reserved", "tenant_reserved"})
"""Refusals that only ask for patience: the upstream works."""

_LONGEST_TEXT: Final = 2_000
_OWNED: Final = "faena_has_fallback"
"""Marks functions that have a fallback."""
_TELLING_S: Final = 5.0

_log = logging.getLogger("faena.resilience")


@known_fields("manual")
@dataclass(frozen=True, slots=True)
class Manual:
    """Instructions for a person: the job goes to the dead-letter desk with them, code MANUAL.

    There an operator does it by hand and resolves it, or retries it once the upstream is back.
    """

    text: str
    """What to do, up to 2,000 characters."""

    def __post_init__(self) -> None:
        text = cast("Any", self.text)
        if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST_TEXT:
            raise ConfigError(
                f"manual text must say in 1 to {_LONGEST_TEXT} characters what to do, "
                f"got {shown(text)}",
                field="text",
                value=text,
            )


@known_fields("fallback")
@dataclass(frozen=True, slots=True)
class Fallback:
    """A fallback with its terms."""

    to: Any
    """A function, a task, `Escalate(task)` or `Manual(text)`."""

    after: Duration | None = None
    """How long a job waits for an upstream first, counted from when it could have started. None:
    not at all if the upstream is out, and without end if it only asks for patience (a limit)."""

    when: When = "either"
    """Whether it is used when an upstream is "unavailable", when attempts are "exhausted", or in
    "either" case."""

    after_us: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("fallback when", self.when, WHENS)
        after = self.after
        derive(self, "after_us", None if after is None else to_us("fallback after", after))
        if after is not None and self.when == "exhausted":
            raise ConfigError(
                "fallback after must not be given with when='exhausted': it is about waiting for "
                "an upstream",
                field="after",
                value=after,
            )
        if isinstance(self.to, Fallback):
            raise ConfigError(
                f"a fallback must not have a fallback, got {shown(self.to)}",
                field="fallback",
                value=self.to,
            )

    def left_us(self, reason: str, waited_us: int) -> int | None:
        """How long a job still waits before it falls back, 0 if it does now; None for never."""
        if self.when == "exhausted":
            return None
        if self.after_us is None:
            return None if reason in PACING else 0
        return max(0, self.after_us - waited_us)

    @property
    def ends_attempts(self) -> bool:
        """Whether it is used when attempts are exhausted."""
        return self.when != "unavailable"

    def may_end_wait(self, reason: str) -> bool:
        """Whether jobs may fall back while they wait for this reason: no queue is held then."""
        return self.left_us(reason, 0) is not None


def refuse_foreign_task(name: str, target: Any, app: Any) -> None:
    """Refuse as a fallback a task of another app: its jobs would go to that app's broker."""
    if target is not None and target.app is not app:
        raise ConfigError(
            f"fallback of task {name} must be a task of app {app.name}, got {target.queue}/"
            f"{target.name} of another app, {target.app.name}: declare it on a queue of app "
            f"{app.name}",
            field="fallback",
            value=target,
        )


def has_fallback(function: object) -> bool:
    """Whether calls of a function fall back to another one."""
    return bool(getattr(function, _OWNED, False))


class Called(Protocol):
    """An upstream, as far as fallbacks of calls need it."""

    name: str

    def call(self) -> UpstreamCall:
        """Make one call."""
        ...

    def sorts(self, error: BaseException) -> Sorted | None:
        """What an error says of it."""
        ...

    def run_in_thread(self, running: Coroutine[Any, Any, Any], /) -> Any:
        """Run a coroutine from a thread without event loop."""
        ...

    async def engine(self) -> Engine:
        """Where events go."""
        ...


def check_call_fallback(fallback: Any, on_error: object) -> None:
    """Refuse what cannot stand in for a call."""
    check_is("on_error", on_error, bool)
    if not inspect.isroutine(fallback) or has_fallback(fallback):
        raise ConfigError(
            f"the fallback of a call must be a function without a fallback of its own, got "
            f"{shown(fallback)}; tasks, Escalate and Manual are fallbacks of tasks: "
            f"@queue.task(fallback=…)",
            field="fallback",
            value=fallback,
        )


def check_guarded(upstream: str, function: Any) -> None:
    """Refuse what no decorator can make a call, such as a class or a task."""
    is_one = inspect.isroutine(function) or isinstance(function, partial)
    if not is_one or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(
            f"what is called as upstream {upstream} must be a function that returns its result, "
            f"got {shown(function)}; a task names its upstreams: @queue.task(upstreams=[…])",
            field="function",
            value=function,
        )


class _Instead:
    """The fallback of the calls of a function."""

    def __init__(self, upstream: Called, fallback: Callable[..., Any], *, on_error: bool) -> None:
        self._upstream, self._fallback, self._on_error = upstream, fallback, on_error

    def applies(self, error: Exception) -> bool:
        if isinstance(error, UpstreamUnavailable):
            return error.upstream == self._upstream.name
        meaning = self._upstream.sorts(error) if self._on_error else None
        return meaning is not None and meaning.kind != "permanent"

    async def call(self, error: Exception, args: Any, named: Any) -> Any:
        try:
            value = self._fallback(*args, **named)
            return await value if inspect.isawaitable(value) else value
        except Exception as second:
            await tell_of_call(self._upstream)
            raise FallbackFailed(name_of(self._fallback), error, second) from second

    def call_in_thread(self, error: Exception, args: Any, named: Any) -> Any:
        try:
            return self._fallback(*args, **named)
        except Exception as second:
            self._upstream.run_in_thread(tell_of_call(self._upstream))
            raise FallbackFailed(name_of(self._fallback), error, second) from second


def guard_call(
    upstream: Called, function: Callable[P, R], fallback: Callable[P, Any], *, on_error: bool
) -> Callable[P, R]:
    """A function whose calls are calls to the upstream, and fall back to another function."""
    check_guarded(upstream.name, function)
    instead = _Instead(upstream, fallback, on_error=on_error)

    @wraps(function)
    async def guarded(*args: P.args, **named: P.kwargs) -> Any:
        try:
            async with upstream.call():
                return await cast("Awaitable[Any]", function(*args, **named))
        except Exception as error:
            if not instead.applies(error):
                raise
            return await instead.call(error, args, named)

    @wraps(function)
    def guarded_in_thread(*args: P.args, **named: P.kwargs) -> Any:
        try:
            with upstream.call():
                return function(*args, **named)
        except Exception as error:
            if not instead.applies(error):
                raise
            return instead.call_in_thread(error, args, named)

    is_async = inspect.iscoroutinefunction(function)
    if inspect.iscoroutinefunction(fallback) and not is_async:
        raise ConfigError(
            f"the fallback of {function.__name__} must be a def as well, got an async def",
            field="fallback",
            value=fallback,
        )
    either = guarded if is_async else guarded_in_thread
    setattr(either, _OWNED, True)
    return cast("Callable[P, R]", either)


def name_of(function: object) -> str:
    """What errors and log lines call it."""
    return str(getattr(function, "__name__", "") or type(function).__name__)


async def tell_of_call(upstream: Called) -> None:
    """An event: the fallback of a call has failed."""
    try:
        named = {"event": "fallback_failed", "what": upstream.name, "is_upstreams": "1"}
        await (await upstream.engine()).ask("fallback", SHARD, **named)
    except FaenaError as error:
        _log.warning("fallback_failed of %s was not recorded: %s", upstream.name, error)


async def tell_of_job(
    engine: Engine, shard: str, event: str, job: str, lease: str, used: str
) -> None:
    """An event: a job has fallen back, or its fallback has failed; `used` is which one, and the
    job that it was handed over to, if it was."""
    try:
        async with asyncio.timeout(_TELLING_S):
            await engine.ask("fallback", shard, event=event, what=job, lease=lease, used=used)
    except (FaenaError, TimeoutError) as error:
        _log.warning("%s of job %s was not recorded: %s", event, job, error)
