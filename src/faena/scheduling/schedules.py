"""`app.schedules`: declares schedules in code, and lets operators read and change them.

    await app.schedules.edit("nightly", cron="0 3 * * *", by="ana")
    await app.schedules.pause("nightly")
    [instant, *_] = await app.schedules.next("nightly", 5)

A change at run time applies to all workers immediately, and overrides the value in code until
`reset`. Everything is checked before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
from msgspec.structs import replace

from faena.codec import codec_for
from faena.engine.calls.scheduling import forget, read
from faena.engine.requester import on_behalf
from faena.engine.scripts import CREATED
from faena.errors import ConfigError, FaenaError, InvalidTransition, Overloaded, nearest, shown
from faena.job import Spec
from faena.middleware import wrap_enqueue
from faena.options import Durability
from faena.producing.handle import Handle
from faena.producing.receipt import Receipt
from faena.scheduling.declare import Declared, Edited, Kept, Start, change, declare, redue, remove
from faena.scheduling.decorators import MISSING, TimedFields, check_task, payload_text
from faena.scheduling.due import Edit, Mark, Record, Schedule, check_schedule
from faena.scheduling.fire import Around, Firer, seal_job, spec_of
from faena.scheduling.options import NAMES, TIMINGS, Terms, check_timing, iso, read_terms
from faena.scheduling.scheduled_task import refuse_stub, task_named
from faena.scheduling.scheduler import Scheduler
from faena.scheduling.view import (
    PastInstant,
    ScheduleReader,
    ScheduleView,
    coming,
    passed,
    view_of,
)
from faena.task import Task
from faena.tenancy.lanes import lane_facts
from faena.values.names import check_label
from faena.values.numbers import check_whole

if TYPE_CHECKING:
    from faena.app import Faena


class Schedules:
    """The schedules of an app."""

    def __init__(self, app: Faena) -> None:
        self._app = app
        self.declared: dict[str, Declared] = {}
        """The schedules declared in this program's code."""
        self._around: Around | None = partial(_through, app) if app.middleware else None

    # -- what the program declares --------------------------------------------------------------

    def add(self, name: str, task: Task[Any, Any], payload: Any, given: Mapping[str, Any]) -> None:
        """Declare a schedule; workers store it when they start."""
        check_schedule(name)
        if name in self.declared:
            raise ConfigError(
                f"schedule {name!r} is declared twice: give one of them another name",
                field="schedule",
                value=name,
            )
        self.declared[name] = Declared(name, task.queue, self._base(task, payload, given))

    def _base(self, task: Task[Any, Any], payload: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        refuse_stub(self._app, task)
        terms = read_terms(given)
        check_timing(terms)
        base = {
            "task": task.name,
            "version": task.handler.version,
            "payload": payload_text(task, payload),
            "priority": task.handler.priority,
            **terms,
        }
        self._check(task.queue, msgspec.convert(base, Terms))
        return base

    def _check(self, queue: str, terms: Terms) -> None:
        lane_facts(queue, self._app.queues[queue].options, terms.tenant, terms.key)

    async def declare(self) -> None:
        """Store the schedules in code, as a starting worker does."""
        for one in self.declared.values():
            await self._declare(one)

    async def _declare(self, one: Declared) -> None:
        engine = (await self._app.runtime()).engine
        start = Start(elsewhere=tuple(self._app.queues))
        await declare(await self._firer(one.queue), engine, one, start)

    async def scheduler(self, queues: Sequence[str], since: int | None = None) -> Scheduler:
        """A scheduler for some queues; new schedules can be due from now on, or from `since`."""
        runtime = await self._app.runtime()
        return Scheduler(
            runtime.engine,
            runtime.routers,
            {queue: self._app.queues[queue].options for queue in queues},
            tuple(self.declared.values()),
            around=self._around,
            tracing=self._app.tracing,
            start=Start(since, tuple(self._app.queues)),
        )

    # -- looking --------------------------------------------------------------------------------

    async def list(self) -> list[ScheduleView]:
        """All schedules, in code or created at run time, in the order of their due instants."""
        return await (await self._reader()).all()

    async def get(self, name: str) -> ScheduleView:
        """One schedule by its name."""
        return view_of(*await self._see(name), self.declared)

    async def next(self, name: str, number: int = 5) -> list[datetime]:
        """Its next instants, in UTC; none while it is paused."""
        number = check_whole("number", number, least=1, most=1000)
        _, schedule = await self._see(name)
        return coming(schedule, number)

    async def past(self, name: str, number: int = 10) -> list[PastInstant]:
        """Its last instants, the newest first, with the ids of their jobs."""
        number = check_whole("number", number, least=1, most=100)
        queue, schedule = await self._see(name)
        now, _ = await read((await self._app.runtime()).engine, queue, [])
        return passed(schedule, number, now)

    # -- changing -------------------------------------------------------------------------------

    async def create(
        self,
        name: str,
        task: Task[Any, Any] | str,
        payload: Any = MISSING,
        *,
        by: str = "operator",
        **given: Unpack[TimedFields],
    ) -> ScheduleView:
        """Create a schedule that is not in code, for a task or its name `queue/task`."""
        check_schedule(name)
        if name in self.declared:
            raise ConfigError(
                f"schedule {name!r} is declared in code: edit it, or choose another name",
                field="schedule",
                value=name,
            )
        known = task_named(self._app, task) if isinstance(task, str) else task
        check_task(name, known)
        base = self._base(known, payload, given)

        def create(kept: Kept) -> Edited:
            if kept.record is not None:
                raise ConfigError(
                    f"schedule {name!r} exists already: edit it, or choose another name",
                    field="schedule",
                )
            record = Record(base=base, since=Mark(by, kept.now))
            _check_left(record, kept.now, given)
            return record, record.first_due(kept.now)

        await self._refuse_elsewhere(name, known.queue)
        return await self._change(known.queue, name, create, by)

    async def edit(
        self,
        name: str,
        *,
        payload: Any = MISSING,
        by: str = "operator",
        **given: Unpack[TimedFields],
    ) -> ScheduleView:
        """Change options for all workers; the values in code no longer apply until `reset`."""
        check_label("by", by)
        if not given and payload is MISSING:
            raise ConfigError("edit must be given an option, got none", field="schedule")
        queue, schedule = await self._find(name)
        terms = schedule.record.terms
        changes = read_terms(given, terms.tz)
        if payload is not MISSING:
            task = self._app.queues[queue].tasks.get(terms.task)
            changes["payload"] = payload_text(task, payload)

        def edit(kept: Kept) -> Edited:
            record = _there(kept, name)
            edits = {one: Edit(value, by, kept.now) for one, value in changes.items()}
            edited = replace(record, edits={**record.edits, **edits})
            after, due = redue(kept, edited)
            if due is None and edited.terms.timing != record.terms.timing:
                _check_left(edited, kept.now, given)
            return after, due

        return await self._change(queue, name, edit, by)

    async def reset(self, name: str, *terms: str, by: str = "operator") -> ScheduleView:
        """Use the values in code again for these options; without names, for all of them."""
        dropped = {"when" if term in TIMINGS else term for term in terms}
        for term in terms:
            if term not in (*NAMES, "payload"):
                raise ConfigError(
                    f"option must be a known name, got {shown(term)}; {nearest(term, NAMES)}",
                    field="term",
                    value=term,
                )
        queue, _ = await self._find(name)

        def reset(kept: Kept) -> Edited:
            record = _there(kept, name)
            edits = record.edits.items() if dropped else ()
            left = {term: edit for term, edit in edits if term not in dropped}
            return redue(kept, replace(record, edits=left))

        return await self._change(queue, name, reset, by)

    async def pause(self, name: str, *, by: str = "operator") -> ScheduleView:
        """Fire nothing until `resume`; instants that pass meanwhile do not count as missed."""
        check_label("by", by)

        def pause(kept: Kept) -> Edited:
            record = _there(kept, name)
            return None if record.paused else (replace(record, paused=Mark(by, kept.now)), None)

        queue, _ = await self._find(name)
        return await self._change(queue, name, pause, by)

    async def resume(self, name: str, *, by: str = "operator") -> ScheduleView:
        """Fire again, from the next instant on."""

        def resume(kept: Kept) -> Edited:
            record = _there(kept, name)
            if record.paused is None:
                return None
            after = replace(record, paused=None)
            return after, after.first_due(kept.now)

        queue, _ = await self._find(name)
        return await self._change(queue, name, resume, by)

    async def remove(self, name: str, *, by: str = "operator") -> None:
        """Remove a schedule, not its jobs; refused if code declares it, as it would come back."""
        if name in tuple(self.declared):  # a tuple, because a wrong name may be unhashable
            raise InvalidTransition(
                f"schedule {name} is declared in code: pause it, or remove it there first",
                op="remove",
            )
        reader, runtime = await self._reader(), await self._app.runtime()
        stored = await reader.find_stored(name)  # also finds one that only a later version can read
        if stored is None:
            raise await self._unknown(name, reader)
        with on_behalf(by):
            await remove(runtime.engine, queue := stored[0], name)
        for shard in await runtime.routers.of(queue).names():
            await forget(runtime.engine, shard, name)

    async def run(self, name: str, *, by: str | None = None) -> Handle[Any]:
        """Create a job now, besides those of the instants; its header has `by`.

        If jobs of the schedule may not overlap and one is live, its handle is returned.
        """
        queue, schedule = await self._see(name)
        terms = schedule.record.terms
        with on_behalf(by):
            made = spec_of(name, terms, None)
        if self._app.tracing is not None:
            self._app.tracing.stamp(made.headers)
        spec = made if self._around is None else await self._around(queue, made)
        if spec is None:
            raise InvalidTransition(f"a middleware prevented the run of schedule {name}", op="run")
        options = self._app.queues[queue].options
        job = seal_job(self._app.new_id(), name, terms, queue, options, spec)
        client = (await self._app.runtime()).client
        ((answer,), _) = await client.enqueue(queue, [job], Durability())
        if answer.code.endswith("OVERLOADED"):
            wait_s = float(answer.detail) / 1e6
            raise Overloaded(
                f"queue {queue} is full: try again in {wait_s:g} s",
                retry_after=wait_s,
                reason=f"queue {queue} at capacity",
            )
        chosen = str(answer.detail) if answer.code == "DUPLICATE" else job.id
        return self._handle(queue, terms.task, chosen)

    # -- its own ----------------------------------------------------------------------------------

    async def _change(
        self, queue: str, name: str, edit: Callable[[Kept], Edited], by: str
    ) -> ScheduleView:
        def checked(kept: Kept) -> Edited:
            edited = edit(kept)
            if edited is not None:
                self._check(queue, edited[0].terms)
            return edited

        runtime = await self._app.runtime()
        with on_behalf(by):
            await change(await self._firer(queue), runtime.engine, name, checked)
        return view_of(*await self._find(name), self.declared)

    async def _firer(self, queue: str) -> Firer:
        runtime = await self._app.runtime()
        options, tracing = self._app.queues[queue].options, self._app.tracing
        return Firer(runtime.engine, runtime.routers, queue, options, self._around, tracing)

    async def _reader(self) -> ScheduleReader:
        engine = (await self._app.runtime()).engine
        return ScheduleReader(engine, tuple(self._app.queues), self.declared)

    async def _see(self, name: str) -> tuple[str, Schedule]:
        """The queue of a schedule, and the schedule, without writing anything."""
        reader = await self._reader()
        found = await reader.find(name)
        if found is None:
            raise await self._unknown(name, reader)
        return found

    async def _unknown(self, name: str, reader: ScheduleReader) -> ConfigError:
        names = [view.name for view in await reader.all()]
        return ConfigError(
            f"no schedule {shown(name)} in app {self._app.name}; {nearest(name, names)}",
            field="schedule",
            value=name,
        )

    async def _find(self, name: str) -> tuple[str, Schedule]:
        """The same for a change: a schedule that is only in code is stored first."""
        queue, schedule = await self._see(name)
        if not schedule.version:
            await self._declare(self.declared[name])
            return await self._see(name)
        return queue, schedule

    async def _refuse_elsewhere(self, name: str, queue: str) -> None:
        stored = await (await self._reader()).find_stored(name)
        if stored is not None and stored[0] != queue:
            raise ConfigError(
                f"schedule {name!r} exists already, on queue {stored[0]}: edit it, or choose "
                "another name",
                field="schedule",
            )

    def _handle(self, queue: str, task: str, job: str) -> Handle[Any]:
        known = self._app.queues[queue].tasks.get(task)
        return known.handle(job) if known else Handle(self._app, queue, job, codec_for(Any))


def _there(kept: Kept, name: str) -> Record:
    if kept.record is None:
        raise ConfigError(f"schedule {name!r} was just removed", field="schedule", value=name)
    return kept.record


def _check_left(record: Record, now: int, given: Iterable[str]) -> None:
    """Refuse options by which the schedule would never fire; pause or remove it instead."""
    if replace(record, paused=None).first_due(now) is None:
        got = {name: text for name in given if (text := record.terms.describe_term(name))}
        raise ConfigError(
            f"a schedule must have an instant after {iso(now)}, got {', '.join(got.values())}",
            field=next(iter(got)),
        )


async def _through(app: Faena, queue: str, spec: Spec) -> Spec | None:
    """Pass a job through the app's middleware before it is sent; None if one prevents it."""
    ready: list[Spec] = []

    async def send(_queue: str, sent: Spec) -> Any:
        ready.append(sent)
        task = app.queues[queue].tasks.get(spec.task)
        return Receipt(id="", durability="memory", task=task) if task else CREATED

    try:
        await wrap_enqueue(app.middleware, send)(queue, spec)
    except FaenaError:
        raise
    except Exception as error:  # users' code: it must not end a worker
        what = f"{type(error).__name__}: {error}"
        raise FaenaError(f"a middleware refused the job: {what}", op="fire") from error
    return ready[0] if ready else None
