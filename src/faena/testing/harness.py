"""Connects an app to a test's own broker, for the duration of a test."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any, TypeVar, Unpack

from faena.app import Faena
from faena.engine import Wire
from faena.engine.calls.resilience import Settled
from faena.errors import ConfigError, StoreError, shown
from faena.job import JobView
from faena.options.fields import check_is
from faena.queue import Queue
from faena.resilience.money import read_money
from faena.resilience.upstream import Upstream, check_own
from faena.states import State
from faena.task import Task
from faena.testing import inline
from faena.testing.clock import Clock
from faena.testing.drain import Drain
from faena.testing.enqueued import Filters, check_task, checks_of, describe_all, describe_filters
from faena.testing.report import Ran, Report
from faena.testing.server import shared_url
from faena.values.duration import Duration, to_us
from faena.values.names import check_label
from faena.values.numbers import check_whole

T = TypeVar("T")

_PAGE = 1000


@asynccontextmanager
async def harness(
    app: Faena, *, url: str | None = None, start: datetime | None = None
) -> AsyncGenerator[Harness]:
    """Point `app` at a real broker of the test's own; afterwards the app is as it was before.

    `url` is the server, by default the private one of this process. The test gets its own namespace
    there, which is removed afterwards. `start` is the time of the clock, now by default.
    """
    with _pointed(app, url, start) as tested:
        try:
            yield tested
        finally:
            await tested.clean()
            await app.close()


@contextmanager
def sync_harness(
    app: Faena, *, url: str | None = None, start: datetime | None = None
) -> Generator[SyncHarness]:
    """The same for tests without an event loop, whose code under test uses `app.sync`."""
    with _pointed(app, url, start) as tested:
        try:
            yield SyncHarness(tested)
        finally:
            app.sync.run(tested.clean())


@contextmanager
def _pointed(app: Faena, url: str | None, start: datetime | None) -> Generator[Harness]:
    _check_app(app)
    clock, namespace = Clock(start), f"test-{secrets.token_hex(8)}"
    with app.override(url=url or shared_url(), namespace=namespace, clock=clock, is_alone=True):
        yield Harness(app, clock, namespace)


class Harness:
    """A test's access to the app: read jobs, move the clock, run ready jobs."""

    def __init__(self, app: Faena, clock: Clock, namespace: str) -> None:
        self.app = app
        self.clock = clock
        self.namespace = namespace
        self._start_us = clock()
        self.attempt = inline.attempt
        self.run_inline = inline.run_inline

    async def jobs(self, *queues: Queue | str) -> list[JobView]:
        """All jobs of the given queues (or names of queues), or of all queues.

        Generated ids are in the order of enqueue.
        """
        found = [
            job
            for queue in self._queues(queues)
            for state in State
            async for job in _all(queue, state)
        ]
        return sorted(found, key=lambda job: job.id)

    async def assert_enqueued(
        self, task: Task[Any, Any], *, count: int | None = None, **expected: Unpack[Filters]
    ) -> list[JobView]:
        """Fail unless `count` jobs of the task, or at least one, match.

        Finished jobs count as well, while retention keeps them; `state="ready"` excludes them.
        Returns the jobs that match.
        """
        check_task(self.app, task)
        checks = checks_of(task, expected, self.clock)
        jobs = await self.jobs()
        found = [job for job in jobs if all(check(job) for check in checks)]
        if len(found) == count or (count is None and found):
            return found
        wanted = "a job" if count is None else f"{count} job" if count == 1 else f"{count} jobs"
        raise AssertionError(
            f"expected {wanted} of {describe_filters(task, expected)}, found {len(found)}; "
            f"{describe_all(jobs, self.clock)}"
        )

    async def assert_not_enqueued(self, task: Task[Any, Any], **expected: Unpack[Filters]) -> None:
        """Fail if any job of the task matches."""
        await self.assert_enqueued(task, count=0, **expected)

    async def drain(
        self,
        *queues: Queue | str,
        through: Duration | None = None,
        at_once: int = 1,
        most: int = 10_000,
        schedules: bool = True,
    ) -> Report:
        """Run all ready jobs in this process until none is left, also those that handlers enqueue.

        `queues` are queues or their names; without any, all queues of the app are drained.
        `through` is how far the clock may move: whenever nothing is ready, it moves to the next
        instant at which something is, so delays, retries and schedules run too. `at_once` is how
        many handlers run at a time; a handler that waits for another job's result needs more than
        1. The test fails after `most` attempts. `schedules` says whether schedules fire.
        """
        at_once = check_whole("at_once", at_once, least=1, most=_PAGE)
        check_is("schedules", schedules, bool)
        drained = self._queues(queues)
        runtime = await self.app.runtime()
        start_us = self.clock()
        until_us = start_us + (0 if through is None else to_us("through", through))
        names = [queue.name for queue in drained]
        drain = Drain(
            runtime.engine,
            runtime.routers,
            runtime.relay,
            self.clock,
            self.app.middleware,
            await self.app.schedules.scheduler(names, self._start_us) if schedules else None,
            dead_letters=self.app.dead_letter_options,
            at_once=at_once,
            most=most,
            gate=runtime.gate if self.app.upstreams else None,
            tracing=self.app.tracing,
        )
        await drain.run(drained, until_us)
        await runtime.gate.flush()
        self.clock.advance_to(max(until_us, self.clock()))
        return Report(tuple(drain.runs))

    async def open_breaker(self, upstream: Upstream, *, tenant: str | None = None) -> None:
        """Have the breaker of an upstream open, as if many calls had failed now.

        `tenant` is whose, if each tenant has its own.
        """
        check_own(upstream, self.app.name, self.app.upstreams)
        if tenant is not None and upstream.options.breaker.per != "tenant":
            raise ConfigError(
                f"tenant must be left out, because all tenants share the breaker of "
                f"{upstream.name}, got {shown(tenant)}; for one of each tenant, declare it with "
                f"breaker=Breaker(per='tenant')",
                field="tenant",
                value=tenant,
            )
        gate = (await self.app.runtime()).gate
        whose = "" if tenant is None else check_label("tenant", tenant)
        gate.group([upstream], whose).counters[0].add_bad(upstream.options.breaker.volume)
        await gate.flush()
        gate.forget()

    async def spend(
        self, upstream: Upstream, amount: str, *, tenant: str | None = None, task: str = ""
    ) -> None:
        """Have so much been spent on calls to an upstream now, such as "50 USD"."""
        check_own(upstream, self.app.name, self.app.upstreams)
        prices, money = upstream.options.price_list, read_money("amount", amount)
        if prices is None or prices.currency != money.currency:
            wanted = "prices" if prices is None else f"its currency, {prices.currency}"
            raise ConfigError(
                f"amount must be of an upstream with {wanted}, got {upstream.name} and {amount}",
                field="amount",
                value=amount,
            )
        gate = (await self.app.runtime()).gate
        whose = "" if tenant is None else check_label("tenant", tenant)
        await gate.settle(Settled("", 0, whose, task, [upstream.name, money.micro]))

    def _queues(self, given: Sequence[Queue | str]) -> Sequence[Queue]:
        return [_queue(self.app, one) for one in given] or list(self.app.queues.values())

    async def clean(self) -> None:
        """Remove every key of the test; an unreachable server is ignored."""
        with contextlib.suppress(StoreError):
            await _erase((await self.app.runtime()).engine.wire, self.namespace)


class SyncHarness:
    """The harness for tests without an event loop; every call blocks."""

    def __init__(self, tested: Harness) -> None:
        self._tested = tested
        self._run = tested.app.sync.run
        self.app = tested.app
        self.clock = tested.clock
        self.namespace = tested.namespace

    def jobs(self, *queues: Queue | str) -> list[JobView]:
        """See `Harness.jobs`."""
        return self._run(self._tested.jobs(*queues))

    def assert_enqueued(
        self, task: Task[Any, Any], *, count: int | None = None, **expected: Unpack[Filters]
    ) -> list[JobView]:
        """See `Harness.assert_enqueued`."""
        return self._run(self._tested.assert_enqueued(task, count=count, **expected))

    def assert_not_enqueued(self, task: Task[Any, Any], **expected: Unpack[Filters]) -> None:
        """See `Harness.assert_not_enqueued`."""
        self._run(self._tested.assert_not_enqueued(task, **expected))

    def drain(
        self,
        *queues: Queue | str,
        through: Duration | None = None,
        at_once: int = 1,
        most: int = 10_000,
        schedules: bool = True,
    ) -> Report:
        """See `Harness.drain`."""
        return self._run(
            self._tested.drain(
                *queues, through=through, at_once=at_once, most=most, schedules=schedules
            )
        )

    def open_breaker(self, upstream: Upstream, *, tenant: str | None = None) -> None:
        """See `Harness.open_breaker`."""
        self._run(self._tested.open_breaker(upstream, tenant=tenant))

    def spend(
        self, upstream: Upstream, amount: str, *, tenant: str | None = None, task: str = ""
    ) -> None:
        """See `Harness.spend`."""
        self._run(self._tested.spend(upstream, amount, tenant=tenant, task=task))

    def attempt(self, task: Task[Any, Any], /, *payload: Any, **options: Any) -> Ran:
        """See `attempt`."""
        return self._run(inline.attempt(task, *payload, **options))

    def run_inline(self, task: Task[Any, T], /, *payload: Any, **options: Any) -> T:
        """See `run_inline`."""
        return self._run(inline.run_inline(task, *payload, **options))


def _check_app(given: Any) -> None:
    if not isinstance(given, Faena):
        hint = "; give the app that has it" if isinstance(given, Queue | Task) else ""
        raise ConfigError(
            f"app must be a Faena, got {shown(given)}{hint}", field="app", value=given
        )


def _queue(app: Faena, given: Any) -> Queue:
    """A queue of the app, given as it is or by its name."""
    if isinstance(given, Queue):
        if app.queues.get(given.name) is given:
            return given
        told = f"queue {given.name} of another app"
    elif isinstance(given, str):
        return app.queues[given]
    else:
        told = shown(given)
    hint = f": its queue is {given.queue!r}" if isinstance(given, Task) else ""
    raise ConfigError(
        f"queues must be queues of app {app.name} or their names, got {told}{hint}; "
        f"valid: {', '.join(sorted(app.queues))}",
        field="queues",
        value=given,
    )


async def _all(queue: Queue, state: State) -> AsyncGenerator[JobView]:
    cursor: str | None = None
    while True:
        page = await queue.jobs(state, limit=_PAGE, cursor=cursor)
        for job in page.jobs:
            yield job
        if page.cursor is None:
            return
        cursor = page.cursor


async def _erase(wire: Wire, namespace: str) -> None:
    for node in await wire.nodes():
        cursor, keys = b"0", list[bytes]()
        while True:
            cursor, found = await wire.call(
                "SCAN", cursor, "MATCH", f"{namespace}:*", "COUNT", _PAGE, node=node
            )
            keys += found
            if cursor == b"0":
                break
        for key in keys:
            await wire.call("UNLINK", key, key=key)
