"""Redrives: many dead jobs of a queue retried by and by, at a rate, after a canary.

    view = await app.dead_letters.redrive("mail", error="ETIMEDOUT", rate="50/s", canary=10)

How far a redrive has come is written on the server with every slice, so whoever drives may die at
any moment: another goes on from there, nothing lost and nothing doubled. Workers do so unasked, see
`redrive_takeover`. Oldest jobs go first; those that die again after it began are not its business.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Unpack

import msgspec

from faena.deadletter.filters import (
    DeadFilter,
    bounded,
    read_decision,
    read_filter,
    read_rate,
)
from faena.deadletter.queues import HOUR_US, DeskQueues
from faena.deadletter.redrive_driver import LONGEST_NAP_S, Driver, Overtaken
from faena.deadletter.redrive_view import UNDER_WAY, RedriveView, Report, known, view_of
from faena.deadletter.views import Status
from faena.engine.calls.deadletter import DeskCalls, Filter, RedriveFilter, RedriveRecord
from faena.engine.calls.lock import Lock
from faena.errors import ConfigError, shown
from faena.limits import Limit
from faena.values.names import check_label
from faena.values.numbers import check_whole

MOST_CANARIES: Final = 200
_MANY: Final = 1_000_000_000
_LEASE_S: Final = 5.0
_SAY_EVERY_S: Final = 1.0


class Plan(NamedTuple):
    """How a redrive is to go."""

    rate: str | Limit | None
    canary: int
    failures: int | None
    by: str
    reason: str

    def record(self, wanted: Filter) -> RedriveRecord:
        """What the server is to know of it, but for which deaths count."""
        canary = check_whole("canary", self.canary, least=0, most=MOST_CANARIES)
        failures = self.failures
        if failures is not None:
            failures = check_whole("failures", failures, least=0, most=_MANY)
        _, reason, by = read_decision("redrive", self.reason, self.by)
        pace = read_rate(self.rate)
        return RedriveRecord(
            filter=RedriveFilter(wanted.task, wanted.tenant, wanted.error, wanted.fingerprint),
            canary=canary,
            failures=failures,
            by=by,
            reason=reason,
            carried=True,
            max=pace.max if pace else None,
            per_us=pace.per_us if pace else None,
        )


class Redrives:
    """Begins, drives, stops and shows redrives."""

    def __init__(self, queues: DeskQueues, *, lease_s: float = _LEASE_S) -> None:
        self._queues = queues
        self._lease_s = lease_s

    # -- for operators --------------------------------------------------------------------------

    async def start_redrive(
        self,
        queue: str,
        *,
        rate: str | Limit | None = None,
        canary: int = 0,
        failures: int | None = None,
        by: str = "operator",
        reason: str = "redrive",
        **wanted: Unpack[DeadFilter],
    ) -> str:
        """Have workers retry all pending dead jobs that a filter asks for, oldest first.

        `rate` says how fast, such as "50/s". The first `canary` jobs must complete before the
        others follow; one that dies ends it. `failures` is how many may die again before it ends
        later on; None for any number. Returns the id of the redrive.
        """
        plan = Plan(rate=rate, canary=canary, failures=failures, by=by, reason=reason)
        redrive = secrets.token_hex(6)
        await self._begin(self._queues.one(queue), redrive, wanted, plan)
        return redrive

    async def redrive(
        self,
        queue: str,
        *,
        rate: str | Limit | None = None,
        canary: int = 0,
        failures: int | None = None,
        by: str = "operator",
        reason: str = "redrive",
        report: Report | None = None,
        **wanted: Unpack[DeadFilter],
    ) -> RedriveView:
        """The same, seen to until it has ended; `report` hears how it stands meanwhile."""
        plan = Plan(rate=rate, canary=canary, failures=failures, by=by, reason=reason)
        driver = Driver(self._queues, self._queues.one(queue), secrets.token_hex(6), report)
        lock = await self._lock(driver)
        try:
            await lock.take()  # before it begins: no worker is faster
            await self._begin(driver.queue, driver.id, wanted, plan)
        except BaseException:
            await lock.drop()
            raise
        return await self._see_to(driver)

    async def watch_redrive(
        self, queue: str, redrive: str, *, report: Report | None = None
    ) -> RedriveView:
        """See to a redrive until it has ended, and drive it while no worker does."""
        return await self._drive(queue, redrive, report)

    async def resume_redrive(
        self, queue: str, redrive: str, *, watch: bool = True, report: Report | None = None
    ) -> RedriveView:
        """Go on with a redrive that was stopped or has failed, or whose driver is gone.

        One that ended before its canaries had all completed sends as many others first. Without
        `watch` it is left to the workers.
        """
        view = await self._tell(queue, redrive, "resume")
        if not watch:
            return view
        return await self._drive(queue, redrive, report, by_force=True)

    async def stop_redrive(self, queue: str, redrive: str) -> RedriveView:
        """End a redrive, whoever drives it; what is retried stays so."""
        return await self._tell(queue, redrive, "stop")

    async def redrive_state(self, queue: str, redrive: str) -> RedriveView:
        """How a redrive stands."""
        return await self._tell(queue, redrive, "look")

    async def redrives(self, queue: str) -> Sequence[RedriveView]:
        """The last redrives of a queue, the newest first."""
        name = self._queues.one(queue)

        async def look(calls: DeskCalls, shards: Sequence[str]) -> Sequence[RedriveView]:
            found: dict[str, list[RedriveRecord]] = {}
            for shard in shards:
                for redrive, record in (await calls.redrives(shard, "list")).items():
                    found.setdefault(redrive, []).append(record)
            views = [view_of(name, redrive, parts) for redrive, parts in found.items()]
            return sorted(views, key=lambda view: -view.begun_at)

        return await self._queues.anywhere(name, look)

    # -- for workers ----------------------------------------------------------------------------

    async def carry_on(self, queue: str, redrive: str) -> RedriveView | None:
        """Drive one that is under way, unless another does: None then."""
        return await self._try_to_drive(
            Driver(self._queues, self._queues.one(queue), redrive, report=None)
        )

    async def under_way(self, queue: str) -> Sequence[str]:
        """The redrives that any worker may carry on: the first shard knows of all, and is the last
        that a driver has done with.
        """
        calls, _ = await self._queues.open()
        found = await calls.redrives(self._queues.one(queue), "list")
        return [
            redrive
            for redrive, record in found.items()
            if record.state in UNDER_WAY and record.carried
        ]

    # -- driving --------------------------------------------------------------------------------

    async def _begin(self, queue: str, redrive: str, given: Mapping[str, Any], plan: Plan) -> None:
        """Write a redrive down, which retries nothing yet."""
        checked, ages = read_filter(given)
        if checked.status not in {"", Status.PENDING}:
            raise ConfigError(
                f"status must be pending in a redrive, got {shown(checked.status)}",
                field="status",
                value=checked.status,
            )
        record = plan.record(checked)

        async def write(calls: DeskCalls, shards: Sequence[str], _epoch: int) -> None:
            now = (await calls.numbers(shards[0], new_us=HOUR_US)).now
            until = bounded(checked, ages, now)
            until_at = now if until.died_to is None else until.died_to
            begun = msgspec.structs.replace(record, until_at=until_at, from_at=until.died_from)
            for shard in shards:
                await calls.redrives(shard, "begin", redrive, begun)

        await self._queues.steady(queue, write)

    async def _drive(
        self, queue: str, redrive: str, report: Report | None, *, by_force: bool = False
    ) -> RedriveView:
        """See to a redrive until it is over, stopped or failed: watch while another drives it.

        By force, whoever drives is relieved: they may be gone.
        """
        name = self._queues.one(queue)
        driver = Driver(self._queues, name, check_label("redrive", redrive), report)
        await driver.check()
        return await self._see_to(driver, by_force=by_force)

    async def _see_to(self, driver: Driver, *, by_force: bool = False) -> RedriveView:
        while True:
            if (view := await self._try_to_drive(driver, by_force=by_force)) is not None:
                return view
            await asyncio.sleep(LONGEST_NAP_S)
            view, by_force = await driver.watch(), False
            if view.state not in UNDER_WAY:
                return view

    async def _try_to_drive(self, driver: Driver, *, by_force: bool = False) -> RedriveView | None:
        driver.lock = lock = await self._lock(driver)
        if not await lock.take(by_force=by_force):
            return None
        try:
            return await self._queues.steady(driver.queue, driver.drive)
        except Overtaken:
            return None
        finally:
            await lock.drop()

    async def _lock(self, driver: Driver) -> Lock:
        calls, _ = await self._queues.open()
        return Lock(
            calls.engine,
            driver.queue,
            f"redriver:{driver.id}",
            owner=driver.owner,
            lease_s=self._lease_s,
            every_s=min(_SAY_EVERY_S, self._lease_s / 4),
        )

    async def _tell(self, queue: str, redrive: str, verb: str) -> RedriveView:
        name = self._queues.one(queue)
        check_label("redrive", redrive)

        async def tell(calls: DeskCalls, shards: Sequence[str]) -> RedriveView:
            parts = [await calls.redrives(shard, verb, redrive) for shard in shards]
            records = [part[redrive] for part in parts if part]
            return view_of(name, redrive, known(records, name, redrive))

        return await self._queues.anywhere(name, tell)
