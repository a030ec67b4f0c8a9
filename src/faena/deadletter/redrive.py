"""Redrives: many dead jobs of a queue retried by and by, at a rate, after a canary.

    view = await app.dead_letters.redrive("mail", error="ETIMEDOUT", rate="50/s", canary=10)

How far a redrive has come is written on the server with every slice, so whoever drives may die at
any moment: `resume` goes on from there, nothing lost and nothing doubled. Oldest jobs go first;
those that die again after it began are not its business.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

import msgspec

from faena.deadletter.asked import bounded, read_decision, read_filter, read_rate
from faena.deadletter.item import Status
from faena.deadletter.reach import HOUR_US, Reach
from faena.engine.desk import SLICE, DeskCalls, Filter, Step
from faena.errors import ConfigError, InvalidTransition, JobNotFound
from faena.limits import Limit
from faena.naming import check_label
from faena.number import check_whole
from faena.options import Priority
from faena.producer import CallIds

MOST_CANARIES: Final = 200
_MANY: Final = 1_000_000_000
_LONGEST_NAP_S: Final = 1.0
_UNDER_WAY: Final = ("canary", "running")
_VERBS: Final = {"failed": "fail", "stopped": "stop"}
"""How all homes are told what one of them says."""

Report = Callable[["RedriveView"], None]


class Plan(NamedTuple):
    """How a redrive is to go."""

    rate: str | Limit | None
    canary: int
    failures: int | None
    by: str
    reason: str

    def record(self, wanted: Filter) -> dict[str, Any]:
        """What the server is to know of it."""
        check_whole("canary", self.canary, least=0, most=MOST_CANARIES)
        if self.failures is not None:
            check_whole("failures", self.failures, least=0, most=_MANY)
        _, reason, by = read_decision("redrive", self.reason, self.by)
        pace = read_rate(self.rate)
        about = {"task": wanted.task, "tenant": wanted.tenant, "error": wanted.error}
        return {
            "filter": about | {"print": wanted.fingerprint},
            "canary": self.canary,
            "failures": self.failures,
            "by": by,
            "reason": reason,
            "max": pace.max if pace else None,
            "per_us": pace.per_us if pace else None,
        }


class RedriveView(msgspec.Struct, frozen=True, kw_only=True):
    """How a redrive stands. Instants are the server's microseconds."""

    id: str
    queue: str
    state: str
    """canary, running, stopped, failed or done."""
    moved: int
    """Dead jobs that were retried."""
    died: int
    """Jobs made of them that are dead again."""
    canary: int
    waiting: int = 0
    """Canaries that have not finished yet, as far as is known."""
    rate: str | None
    by: str
    reason: str
    begun_at: int
    ended_at: int | None


class Redrives:
    """Begins, drives, stops and shows redrives."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def begin(self, queue: str, given: Mapping[str, Any], plan: Plan) -> str:
        """Write a redrive down, which retries nothing yet; returns its id."""
        name = self._reach.one(queue)
        checked, ages = read_filter(given)
        if checked.status not in {"", Status.PENDING}:
            raise ConfigError(
                f"status must be pending in a redrive, got {checked.status!r}",
                field="status",
                value=checked.status,
            )
        redrive, record = secrets.token_hex(6), plan.record(checked)

        async def write(calls: DeskCalls, homes: Sequence[str], _epoch: int) -> None:
            now = (await calls.numbers(homes[0], new_us=HOUR_US)).now
            until = bounded(checked, ages, now)
            record["until_at"] = now if until.died_to is None else until.died_to
            record["from_at"] = until.died_from
            for home in homes:
                await calls.redrives(home, "begin", redrive, record)

        await self._reach.steady(name, write)
        return redrive

    async def drive(self, queue: str, redrive: str, report: Report | None = None) -> RedriveView:
        """Go on with a redrive until it is over, stopped or failed."""
        name = self._reach.one(queue)
        driver = _Driver(self._reach, name, check_label("redrive", redrive), report)
        await driver.check()
        return await self._reach.steady(name, driver.drive)

    async def resume(self, queue: str, redrive: str, report: Report | None = None) -> RedriveView:
        """Go on with one that nobody drives, also after it was stopped or has failed.

        One that ended before its canaries were well sends others first.
        """
        await self._tell(queue, redrive, "resume")
        return await self.drive(queue, redrive, report)

    async def stop(self, queue: str, redrive: str) -> RedriveView:
        """End a redrive, whoever drives it; what is retried stays so."""
        return await self._tell(queue, redrive, "stop")

    async def list(self, queue: str) -> list[RedriveView]:
        """The redrives of a queue that are remembered, the newest first."""
        name = self._reach.one(queue)

        async def look(calls: DeskCalls, homes: Sequence[str]) -> list[RedriveView]:
            found: dict[str, list[dict[str, Any]]] = {}
            for home in homes:
                for redrive, record in (await calls.redrives(home, "list")).items():
                    found.setdefault(redrive, []).append(record)
            views = [view_of(name, redrive, parts) for redrive, parts in found.items()]
            return sorted(views, key=lambda view: -view.begun_at)

        return await self._reach.anywhere(name, look)

    async def _tell(self, queue: str, redrive: str, verb: str) -> RedriveView:
        name = self._reach.one(queue)
        check_label("redrive", redrive)

        async def tell(calls: DeskCalls, homes: Sequence[str]) -> RedriveView:
            parts = [await calls.redrives(home, verb, redrive) for home in homes]
            records = [part[redrive] for part in parts if part]
            return view_of(name, redrive, _known(records, name, redrive))

        return await self._reach.anywhere(name, tell)


class _Driver:
    """Drives one redrive at all homes of its queue, one after the other."""

    def __init__(self, reach: Reach, queue: str, redrive: str, report: Report | None) -> None:
        self._reach = reach
        self._queue = queue
        self._id = redrive
        self._report = report
        self._calls_made = CallIds()
        self._name = self._calls_made()
        self._records: dict[str, dict[str, Any]] = {}
        self._waiting: dict[str, int] = {}
        self._free_at = 0.0
        """When the rate allows more, at whichever home: by this program's clock."""

    async def check(self) -> None:
        """Refuse what is not under way."""
        await self._reach.steady(self._queue, self._look)
        view = self.view()
        if view.state not in (*_UNDER_WAY, "done"):
            raise InvalidTransition(
                f"redrive {self._id} is {view.state}: resume it to go on", op="redrive"
            )

    async def _look(self, calls: DeskCalls, homes: Sequence[str], _epoch: int) -> None:
        self._records = {}
        for home in homes:
            await self._ask(calls, home, "look")
        _known(list(self._records.values()), self._queue, self._id)

    def view(self) -> RedriveView:
        """How it stands, as far as this driver knows."""
        view = view_of(self._queue, self._id, list(self._records.values()))
        return msgspec.structs.replace(view, waiting=sum(self._waiting.values()))

    async def drive(self, calls: DeskCalls, homes: Sequence[str], epoch: int) -> RedriveView:
        """From the oldest jobs on: homes may have changed since somebody last looked."""
        await self._look(calls, homes, epoch)
        if self.view().state in _VERBS:  # it was ended while homes changed
            return self.view()
        await self._be_everywhere(calls, homes)
        if any(record["state"] in {"running", "done"} for record in self._records.values()):
            await self._tell(calls, "go")  # the canaries were well, or there are none
        elif not await self._send_canaries(calls, homes, epoch):
            return self.view()
        for home in homes:
            await self._exhaust(calls, home, epoch)
        return self.view()

    async def _be_everywhere(self, calls: DeskCalls, homes: Sequence[str]) -> None:
        """A home that came after the beginning has to know of it."""
        first = next(iter(self._records.values()))
        for home in homes:
            if home not in self._records:
                await calls.redrives(home, "begin", self._id, first)
            await self._ask(calls, home, "rewind")

    async def _tell(self, calls: DeskCalls, verb: str) -> None:
        for home in list(self._records):
            await self._ask(calls, home, verb)

    async def _ask(self, calls: DeskCalls, home: str, verb: str) -> None:
        answer = await calls.redrives(home, verb, self._id)
        if self._id in answer:
            self._records[home] = answer[self._id]

    async def _step(self, calls: DeskCalls, home: str, epoch: int, most: int) -> Step:
        ids = self._reach.new_ids(most) if most else []
        call = (self._name, self._calls_made())
        step = await calls.redrive(home, self._id, call, Priority.HIGH, ids, epoch=epoch)
        if step is None:
            raise _unknown(self._queue, self._id)
        self._records[home], self._waiting[home] = step.record, step.waiting
        if step.moved:
            self._free_at = time.monotonic() + step.wait_us / 1e6
        if self._report:
            self._report(self.view())
        return step

    async def _send_canaries(self, calls: DeskCalls, homes: Sequence[str], epoch: int) -> bool:
        """Retry the first jobs and wait for them; whether all have completed."""
        for home in homes:
            while (left := self._canaries_left()) and await self._may_go_on(calls, home):
                step = await self._step(calls, home, epoch, min(left, SLICE))
                if step.state != "canary" or step.is_over:
                    break
                if not step.moved:
                    await _nap(step.wait_us)
        while self.view().state == "canary":
            steps = [await self._step(calls, home, epoch, 0) for home in homes]
            is_watched = all(step.state == "canary" for step in steps)
            if not is_watched or not any(step.waiting for step in steps):
                break
            await _nap(max(step.wait_us for step in steps))
        verb = _VERBS.get(self.view().state, "go")  # another driver may have seen them well before
        await self._tell(calls, verb)
        return verb == "go"

    def _canaries_left(self) -> int:
        records = list(self._records.values())
        return records[0]["canary"] - sum(len(record["first"]) for record in records)

    async def _exhaust(self, calls: DeskCalls, home: str, epoch: int) -> None:
        """Slice by slice until nothing is left here, or somebody or something has ended it."""
        while await self._may_go_on(calls, home):
            step = await self._step(calls, home, epoch, SLICE)
            if step.state != "running":
                break
            if not step.moved:
                await _nap(step.wait_us)
        if (state := self._records[home]["state"]) in _VERBS:
            await self._tell(calls, _VERBS[state])

    async def _may_go_on(self, calls: DeskCalls, home: str) -> bool:
        """Wait until the rate, which is that of all homes, allows more; False when it was ended."""
        while (left_s := self._free_at - time.monotonic()) > 0:
            await asyncio.sleep(min(left_s, _LONGEST_NAP_S))
            await self._ask(calls, home, "look")
            if self._records[home]["state"] in _VERBS:
                break
        return self.view().state not in _VERBS


async def _nap(wait_us: int) -> None:
    """Until it is worth a look: somebody may have ended it meanwhile."""
    await asyncio.sleep(min(wait_us / 1e6, _LONGEST_NAP_S))


def view_of(queue: str, redrive: str, records: Sequence[Mapping[str, Any]]) -> RedriveView:
    """One redrive out of what each home knows of it."""
    first, states = records[0], {record["state"] for record in records}
    order = ("failed", "stopped", "canary", "running", "done")
    state = next(word for word in order if word in states)
    most, per_us = first.get("max"), first.get("per_us")
    ended = [record["ended_at"] for record in records if record.get("ended_at")]
    rate = Limit(max=most, per=timedelta(microseconds=per_us)) if most and per_us else None
    return RedriveView(
        id=redrive,
        queue=queue,
        state=state,
        moved=sum(record["moved"] for record in records),
        died=sum(record["died"] for record in records),
        canary=first["canary"],
        rate=str(rate) if rate else None,
        by=first["by"],
        reason=first["reason"],
        begun_at=int(first["at"]),
        ended_at=int(max(ended)) if ended and state not in _UNDER_WAY else None,
    )


def _known(
    records: Sequence[Mapping[str, Any]], queue: str, redrive: str
) -> Sequence[Mapping[str, Any]]:
    if not records:
        raise _unknown(queue, redrive)
    return records


def _unknown(queue: str, redrive: str) -> JobNotFound:
    return JobNotFound(f"no redrive {redrive} in queue {queue}", op="redrive")
