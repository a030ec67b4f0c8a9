"""Redrives: retries many dead jobs of a queue as new jobs, at a rate, after a canary.

    view = await app.dead_letters.redrive("mail", error="ETIMEDOUT", rate="50/s", canary=10)

The server stores the progress of a redrive with every slice. So the process that drives it may die
at any moment: another one continues, and no job is lost or retried twice. Workers do this
automatically, see `redrive_takeover`. The oldest jobs go first. Jobs that die after the start of
the redrive are not part of it.
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
    """The options of a redrive."""

    rate: str | Limit | None
    canary: int
    failures: int | None
    by: str
    reason: str

    def record(self, wanted: Filter) -> RedriveRecord:
        """The record for the server, without the range of deaths."""
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
    """Starts, drives, stops and shows redrives."""

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
        """Let workers retry all pending dead jobs that match a filter, oldest first.

        `rate` is the most jobs per time, such as "50/s". The first `canary` jobs must complete
        before the others follow; if one of them dies, the redrive fails. Afterwards, it fails when
        more than `failures` jobs die again; None: never. Returns the id of the redrive.
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
        """Start a redrive and wait for its end; `report` is called with its state meanwhile."""
        plan = Plan(rate=rate, canary=canary, failures=failures, by=by, reason=reason)
        driver = Driver(self._queues, self._queues.one(queue), secrets.token_hex(6), report)
        lock = await self._lock(driver)
        try:
            await lock.take()  # before it begins, so that no worker drives it
            await self._begin(driver.queue, driver.id, wanted, plan)
        except BaseException:
            await lock.drop()
            raise
        return await self._see_to(driver)

    async def watch_redrive(
        self, queue: str, redrive: str, *, report: Report | None = None
    ) -> RedriveView:
        """Wait for the end of a redrive, and drive it while no worker does."""
        return await self._drive(queue, redrive, report)

    async def resume_redrive(
        self, queue: str, redrive: str, *, watch: bool = True, report: Report | None = None
    ) -> RedriveView:
        """Continue a redrive that was stopped or has failed, or whose driver has died.

        If it ended before all canaries had completed, it sends the same number of canaries first.
        Without `watch`, workers drive it.
        """
        view = await self._send(queue, redrive, "resume")
        if not watch:
            return view
        return await self._drive(queue, redrive, report, by_force=True)

    async def stop_redrive(self, queue: str, redrive: str) -> RedriveView:
        """Stop a redrive, wherever it runs; jobs that were retried stay retried."""
        return await self._send(queue, redrive, "stop")

    async def redrive_state(self, queue: str, redrive: str) -> RedriveView:
        """The state of a redrive."""
        return await self._send(queue, redrive, "look")

    async def redrives(self, queue: str) -> Sequence[RedriveView]:
        """The last redrives of a queue, newest first."""
        return await self.all_redrives(queues=self._queues.one(queue))

    async def all_redrives(
        self, *, queues: str | Sequence[str] | None = None
    ) -> Sequence[RedriveView]:
        """The last redrives of all queues, or of the given ones, newest first."""
        calls, _ = await self._queues.open()
        shards = await self._queues.shards(self._queues.chosen(queues))
        told = await calls.redrives_of_each([shard for _, shard in shards])
        found: dict[tuple[str, str], list[RedriveRecord]] = {}
        for (queue, _), records in zip(shards, told, strict=True):
            for redrive, record in records.items():
                found.setdefault((queue, redrive), []).append(record)
        views = [view_of(queue, redrive, parts) for (queue, redrive), parts in found.items()]
        return sorted(views, key=lambda view: -view.begun_at)

    # -- for workers ----------------------------------------------------------------------------

    async def carry_on(self, queue: str, redrive: str) -> RedriveView | None:
        """Drive a running redrive; None if another process drives it."""
        return await self._try_to_drive(
            Driver(self._queues, self._queues.one(queue), redrive, report=None)
        )

    async def under_way(self, queue: str) -> Sequence[str]:
        """The redrives that any worker may continue.

        The first shard knows all of them, and drivers finish it last.
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
        """Store a redrive; no job is retried yet."""
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
        """Drive a redrive until it is done, stopped or failed; watch while another drives it.

        With `by_force`, take over from the other driver, which may have died.
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

    async def _send(self, queue: str, redrive: str, verb: str) -> RedriveView:
        name = self._queues.one(queue)
        check_label("redrive", redrive)

        async def send(calls: DeskCalls, shards: Sequence[str]) -> RedriveView:
            parts = [await calls.redrives(shard, verb, redrive) for shard in shards]
            records = [part[redrive] for part in parts if part]
            return view_of(name, redrive, known(records, name, redrive))

        return await self._queues.anywhere(name, send)
