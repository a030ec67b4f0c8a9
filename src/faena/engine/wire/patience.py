"""How long one call keeps trying, and how it spaces its attempts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from faena.engine.wire.faults import Failure
from faena.errors import StoreUnavailable

T = TypeVar("T")

_STEP_S = 0.05
_CAP_S = 2.0
_MAX_REDIRECTS = 8  # in one call; more means that the nodes disagree, and waiting is better
_LEAST_S = 0.05  # the last attempt gets this much even when time is all but up
_GRACE_S = 0.2  # for an attempt that ends in time to say why


class _Bound:
    """An instant of the loop's clock, for what is done inside one `with` block.

    Tasks begun there inherit it and may outlive the block: then it is none of theirs.
    """

    def __init__(self, until: float, spent_s: float) -> None:
        self.until = until
        self.spent_s = spent_s
        self.is_over = False


_bound: ContextVar[_Bound | None] = ContextVar("faena_bound", default=None)


@contextmanager
def within(budget_s: float | None, *, spent_s: float = 0.0) -> Generator[None]:
    """Bound all calls inside the `with` block to this time together; None removes a bound.

    `spent_s`, the time of an earlier try, is only added to the time in error messages.
    """
    bound = None if budget_s is None else _Bound(_loop_time() + budget_s, spent_s)
    token = _bound.set(bound)
    try:
        yield
    finally:
        _bound.reset(token)
        if bound is not None:
            bound.is_over = True


def at_most(budget_s: float) -> AbstractContextManager[None]:
    """The same for calls that belong together, unless they already have a bound."""
    return within(budget_s) if bound_at() is None else nullcontext()


def _loop_time() -> float:
    """The clock of event loops, also for a thread that has none and lets others run its calls."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


def unreached(waited_s: float) -> StoreUnavailable:
    """The error for a caller whose patience ended before an attempt that others go on with."""
    words = f"could not reach the broker after {waited_s:.1f} s; another call is still trying"
    return StoreUnavailable(words, op="connect")


async def joined(
    running: asyncio.Future[T] | None,
    begin: Callable[[], asyncio.Future[T]],
    patience_s: float,
    late: Callable[[float], StoreUnavailable] = unreached,
) -> T:
    """The outcome of an attempt that callers share: the one that runs, or else one begun now.

    Each waits as long as its own patience lasts, and is then told what `late` says. Where the
    other's was shorter and it ended in vain, one is begun for this caller.
    """
    started_at, until = _loop_time(), bound_at()
    try:
        async with asyncio.timeout_at(None if until is None else until + _GRACE_S):
            return await asyncio.shield(running or begin())
    except TimeoutError:
        raise late(_loop_time() - started_at) from None
    except StoreUnavailable:
        if running is None or _loop_time() >= (until or started_at + patience_s):
            raise
    return await joined(None, begin, patience_s, late)


class Shared(Generic[T]):
    """Work that concurrent callers share."""

    def __init__(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        late: Callable[[float], StoreUnavailable] = unreached,
    ) -> None:
        self._work = work
        self._late = late
        self.task: asyncio.Task[T] | None = None
        """The work, while it lasts."""

    async def outcome(self, patience_s: float) -> T:
        """What the work under way comes to, or work begun now; as in `joined`."""
        return await joined(self.task, self._begin, patience_s, self._late)

    def _begin(self) -> asyncio.Task[T]:
        if self.task is None:
            self.task = asyncio.create_task(self._work())
            self.task.add_done_callback(self._ended)
        return self.task

    def _ended(self, task: asyncio.Task[T]) -> None:
        self.task = None
        if not task.cancelled():
            task.exception()  # told to those who wait for it


def bound_at() -> float | None:
    """The instant of the loop's clock at which calls made here must be over; None without one."""
    bound = _bound.get()
    return None if bound is None or bound.is_over else bound.until


def pause_s(attempt: int, jitter: Callable[[], float]) -> float:
    """The pause before attempt n+1: min(n·50 ms, 2 s), less up to half of it."""
    return min(attempt * _STEP_S, _CAP_S) * (1 - jitter() / 2)


class Patience:
    """The time budget of one call, and what it has spent of it."""

    is_outcome_unknown = False
    """Whether a request went out that was not answered."""

    _pauses = _redirects = 0
    _seen: Failure | None = None

    def __init__(self, budget_s: float, jitter: Callable[[], float]) -> None:
        self._clock = asyncio.get_running_loop().time
        self._started_at = self._clock()
        self._budget_s = budget_s
        if budget_s > 0 and (until := bound_at()) is not None:
            self._budget_s = max(until - self._started_at, _LEAST_S)
        self._jitter = jitter

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._started_at

    @property
    def told_s(self) -> float:
        """How long it took, for a caller who may have tried before."""
        bound = _bound.get()
        return self.elapsed_s + (0.0 if bound is None else bound.spent_s)

    def seen(self, failure: Failure) -> Failure:
        """The failure to report: an earlier one, if the last attempt only ran out of time."""
        if self._seen is None or not isinstance(failure, TimeoutError):
            self._seen = failure
        return self._seen

    def limit(self, timeout_s: float) -> float:
        """How long one attempt may be silent; a call sent only once may use its whole timeout."""
        if self._budget_s <= 0:
            until = bound_at() or self._clock() + timeout_s
            return min(timeout_s, max(until - self._clock(), _LEAST_S))
        return min(timeout_s, max(self._budget_s - self.elapsed_s, _LEAST_S))

    def may_pause(self) -> bool:
        """False when another attempt would start too late."""
        return self.elapsed_s + min((self._pauses + 1) * _STEP_S, _CAP_S) < self._budget_s

    def may_redirect(self) -> bool:
        """Count one redirection; False when there were too many."""
        self._redirects += 1
        return self._redirects <= _MAX_REDIRECTS

    async def pause(self) -> None:
        self._pauses += 1
        await asyncio.sleep(pause_s(self._pauses, self._jitter))
