"""Drives one redrive: the canaries first, then slice by slice in every shard, at its rate."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from faena.deadletter.queues import HOUR_US, DeskQueues
from faena.deadletter.redrive_view import (
    UNDER_WAY,
    RedriveView,
    Report,
    known,
    unknown,
    view_of,
)
from faena.engine.calls.deadletter import SLICE, DeskCalls, RedriveRecord, Step
from faena.engine.calls.lock import Lock
from faena.errors import InvalidTransition
from faena.options import Priority
from faena.producing.batcher import CallIds

LONGEST_NAP_S: Final = 1.0
_VERBS: Final = {"failed": "fail", "stopped": "stop"}
"""State in one shard → the verb that sets it in all shards."""


class Overtaken(Exception):
    """Another process drives the redrive now."""


class Driver:
    """Drives one redrive in all shards of its queue, one after the other."""

    def __init__(self, queues: DeskQueues, queue: str, redrive: str, report: Report | None) -> None:
        self._queues = queues
        self.queue = queue
        self.id = redrive
        self._report = report
        self.owner = secrets.token_hex(8)
        self.lock: Lock | None = None
        self._calls_made = CallIds()
        self._name = self._calls_made()
        self._records: dict[str, RedriveRecord] = {}
        self._waiting: dict[str, int] = {}
        self._free_at = 0.0
        """When the rate allows more jobs, over all shards, by this program's clock."""

    async def check(self) -> None:
        """Refuse a redrive that is not running."""
        await self._queues.steady(self.queue, self._look)
        view = self.view()
        if view.state not in (*UNDER_WAY, "done"):
            raise InvalidTransition(
                f"redrive {self.id} is {view.state}: resume it to continue", op="redrive"
            )

    async def _look(self, calls: DeskCalls, shards: Sequence[str], _epoch: int) -> None:
        self._records = {}
        for shard in shards:
            await self._ask(calls, shard, "look")
        known(list(self._records.values()), self.queue, self.id)
        # the rate applies to all shards together, also after another driver's last slice
        now = (await calls.numbers(shards[0], new_us=HOUR_US)).now
        due_at = max(record.due_at for record in self._records.values())
        self._free_at = max(self._free_at, time.monotonic() + (due_at - now) / 1e6)

    async def watch(self) -> RedriveView:
        """The state of the redrive while another process drives it."""

        async def look(calls: DeskCalls, shards: Sequence[str]) -> None:
            self._records = {}
            for shard in shards:
                await self._ask(calls, shard, "look")
            known(list(self._records.values()), self.queue, self.id)

        await self._queues.anywhere(self.queue, look)
        if self._report:
            self._report(self.view())
        return self.view()

    def view(self) -> RedriveView:
        """The state of the redrive, as far as this driver knows."""
        view = view_of(self.queue, self.id, list(self._records.values()))
        return msgspec.structs.replace(view, waiting=sum(self._waiting.values()))

    async def drive(self, calls: DeskCalls, shards: Sequence[str], epoch: int) -> RedriveView:
        """Drive from the oldest jobs on, because shards may have changed since the last driver."""
        await self._look(calls, shards, epoch)
        if (state := self.view().state) in _VERBS:  # perhaps not all shards were told
            await self._send(calls, _VERBS[state])
            return self.view()
        if self._report:
            self._report(self.view())  # its id, before anything is retried
        await self._be_everywhere(calls, shards)
        if any(record.state in {"running", "done"} for record in self._records.values()):
            await self._send(calls, "go")  # all canaries completed, or there are none
        elif not await self._send_canaries(calls, shards, epoch):
            return self.view()
        for shard in reversed(shards):  # the first one last: others read there whether it runs
            await self._exhaust(calls, shard, epoch)
        return self.view()

    async def _be_everywhere(self, calls: DeskCalls, shards: Sequence[str]) -> None:
        """Store the redrive in shards that were added after its start."""
        first = next(iter(self._records.values()))
        for shard in shards:
            if shard not in self._records:
                await calls.redrives(shard, "begin", self.id, first)
            await self._ask(calls, shard, "rewind")

    async def _send(self, calls: DeskCalls, verb: str) -> None:
        for shard in list(self._records):
            await self._ask(calls, shard, verb)

    async def _ask(self, calls: DeskCalls, shard: str, verb: str) -> None:
        answer = await calls.redrives(shard, verb, self.id)
        if self.id in answer:
            self._records[shard] = answer[self.id]

    async def _step(self, calls: DeskCalls, shard: str, epoch: int, most: int) -> Step:
        await self._hold()
        ids = self._queues.new_ids(most) if most else []
        call = (self._name, self._calls_made())
        step = await calls.redrive(shard, self.id, call, Priority.HIGH, ids, epoch=epoch)
        if step is None:
            raise unknown(self.queue, self.id)
        self._records[shard], self._waiting[shard] = step.record, step.waiting
        if step.moved:
            self._free_at = time.monotonic() + step.wait_us / 1e6
        if self._report:
            self._report(self.view())
        return step

    async def _hold(self) -> None:
        if self.lock is not None and not await self.lock.keep():
            raise Overtaken

    async def _send_canaries(self, calls: DeskCalls, shards: Sequence[str], epoch: int) -> bool:
        """Retry the canaries and wait for them; returns whether all have completed."""
        for shard in shards:
            while (left := self._canaries_left()) and await self._may_go_on(calls, shard):
                step = await self._step(calls, shard, epoch, min(left, SLICE))
                if step.state != "canary" or step.is_over:
                    break
                if not step.moved:
                    await _nap(step.wait_us)
        while self.view().state == "canary":
            steps = [await self._step(calls, shard, epoch, 0) for shard in shards]
            is_watched = all(step.state == "canary" for step in steps)
            if not is_watched or not any(step.waiting for step in steps):
                break
            await _nap(max(step.wait_us for step in steps))
        verb = _VERBS.get(self.view().state, "go")  # another driver may have seen them complete
        await self._send(calls, verb)
        return verb == "go"

    def _canaries_left(self) -> int:
        records = list(self._records.values())
        return max(0, records[0].canary - sum(len(record.first) for record in records))

    async def _exhaust(self, calls: DeskCalls, shard: str, epoch: int) -> None:
        """Retry slice by slice until no job is left here, or the redrive was ended."""
        while await self._may_go_on(calls, shard):
            step = await self._step(calls, shard, epoch, SLICE)
            if step.state != "running":
                break
            if not step.moved:
                await _nap(step.wait_us)
        if (state := self._records[shard].state) in _VERBS:
            await self._send(calls, _VERBS[state])

    async def _may_go_on(self, calls: DeskCalls, shard: str) -> bool:
        """Wait until the rate, over all shards, allows more; False if the redrive was ended."""
        while (left_s := self._free_at - time.monotonic()) > 0:
            await asyncio.sleep(min(left_s, LONGEST_NAP_S))
            await self._hold()
            await self._ask(calls, shard, "look")
            if self._records[shard].state in _VERBS:
                break
        return self.view().state not in _VERBS


async def _nap(wait_us: int) -> None:
    """Sleep until the next check, because the redrive may be ended meanwhile."""
    await asyncio.sleep(min(wait_us / 1e6, LONGEST_NAP_S))
