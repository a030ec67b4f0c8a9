"""The lists of work: queues, their jobs, dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from faena.cli.monitor.listing import Deed, Listing, Reading, Row
from faena.cli.output import attempts, counted, instant, plain
from faena.cli.status_reading import QueueStatus, lasting, read_status
from faena.deadletter.views import DeadLetter, Status
from faena.job import JobView
from faena.outcomes import ErrorRecord
from faena.producing.handle import Handle
from faena.queue import Queue
from faena.states import FINISHED, State

_MOST: Final = 200
_STYLES: Final = {3: "bold red", 2: "yellow", 1: "yellow"}
_PAUSE: Final = "pause"


@dataclass
class Queues(Listing):
    """Every queue, what is worst first."""

    title = "Queues"
    heads = ("queue", "ready", "oldest", "running", "delayed", "dead", "per min", "errors", "holds")

    async def read(self) -> Reading:
        status = await read_status(self.app)
        worst = {one.about: one.severity for one in reversed(status.problems)}
        said = "all is well"
        for first in status.problems[:1]:
            number = counted(len(status.problems), "problem")
            said = f"{number}, first {first.about}: {first.message}"
        rows = [
            Row(one.queue, _cells(one), _STYLES.get(worst.get(f"queue {one.queue}", 0), ""), one)
            for one in status.queues
        ]
        return Reading(said, rows)

    def opened(self, row: Row) -> Listing:
        """Its jobs, those that wait or else those that are dead first."""
        return Jobs(self.app, self.by, self.app.queues[row.key])

    def deeds(self, row: Row) -> Sequence[Deed]:
        """Pause it, or end each of its holds."""
        queue, now = self.app.queues[row.key], row.about.now
        ready = counted(now.counts["ready"], "ready job")
        if now.holds:
            return [self._release(queue, [hold.reason for hold in now.holds], ready)]
        return [
            Deed(
                key="p",
                words="pause",
                effect=f"Pause {queue.name}? {ready} will wait; running jobs go on.",
                do=lambda: queue.pause(reason=_PAUSE, by=self.by),
            )
        ]

    def _release(self, queue: Queue, reasons: Sequence[str], ready: str) -> Deed:
        async def release() -> None:
            for reason in reasons:
                await queue.resume(reason=reason, by=self.by)

        return Deed(
            key="p",
            words="resume",
            effect=f"Resume {queue.name}? {ready} may start. Held for: {', '.join(reasons)}.",
            do=release,
        )


def _cells(one: QueueStatus) -> Sequence[str]:
    counts, rate = one.now.counts, one.lately.error_rate
    running = f"{counts['running']} of {one.now.slots}" if one.now.slots else counts["running"]
    return (
        one.queue,
        f"{counts['ready']:,}",
        lasting(one.now.oldest_us) or "-",
        str(running),
        f"{counts['delayed']:,}",
        f"{counts['dead']:,}",
        f"{one.per_minute:.1f}",
        "-" if rate is None else f"{rate:.1%}",
        ", ".join(hold.reason for hold in one.now.holds),
    )


@dataclass
class Jobs(Listing):
    """The jobs of a queue in one state; Tab shows the next state."""

    queue: Queue
    state: State = State.READY

    heads = ("id", "task", "tenant", "attempts", "since", "last error")

    def __post_init__(self) -> None:
        self.title = f"{self.queue.name}, {self.state.value}"

    def next(self) -> Listing:
        """The same queue in the next state."""
        states = list(State)
        after = states[(states.index(self.state) + 1) % len(states)]
        return Jobs(self.app, self.by, self.queue, after)

    async def read(self) -> Reading:
        counts = await self.queue.counts()
        page = await self.queue.jobs(
            self.state, limit=_MOST, is_newest_first=self.state in FINISHED, source="broker"
        )
        every = "  ".join(f"{state.value} {counts[state.value]:,}" for state in State)
        more = f"; the first {_MOST} are shown" if page.cursor else ""
        rows = [Row(f"{one.tenant or ''}/{one.id}", _job_cells(one), "", one) for one in page.jobs]
        return Reading(f"{every}{more}", rows)

    async def told(self, row: Row) -> str | None:
        """Why it is there, and what went wrong."""
        explained = await self._handle(row.about).explain()
        found = [str(explained), *(f"next: {one}" for one in explained.next), ""]
        if explained.expected_start:
            found.insert(1, f"expected start: {explained.expected_start.words}")
        found += _failures(row.about.errors)
        return "\n".join([*found, *(f"log: {line}" for line in row.about.log)])

    def deeds(self, row: Row) -> Sequence[Deed]:
        """What its state allows."""
        job: JobView = row.about
        handle, name = self._handle(job), f"job {job.id} of {job.queue}"
        found: list[Deed] = []
        if job.state is State.DELAYED:
            effect = f"Make {name} ready now, before its time?"
            found.append(
                Deed(key="n", words="run now", effect=effect, do=lambda: handle.promote(by=self.by))
            )
        if job.state in FINISHED:
            effect = f"Run {name} again, with fresh attempts?"
            found.append(
                Deed(key="r", words="rerun", effect=effect, do=lambda: handle.rerun(by=self.by))
            )
        else:
            is_running = job.state is State.RUNNING
            effect = f"Ask {name} to stop?" if is_running else f"Cancel {name}? It never starts."
            found.append(
                Deed(key="c", words="cancel", effect=effect, do=lambda: handle.cancel(by=self.by))
            )
        return found

    def _handle(self, job: JobView) -> Handle[Any]:
        return self.queue.handle(job.id, tenant=job.tenant)


def _job_cells(job: JobView) -> Sequence[str]:
    last = job.errors[-1] if job.errors else None
    since = job.finished_at or job.started_at or job.due_at or job.enqueued_at
    return (
        job.id,
        job.task,
        job.tenant or "",
        attempts(job.attempts_made, job.max_attempts),
        instant(since) or "",
        plain(f"{last.code or last.name}: {last.message}") if last else "",
    )


@dataclass
class Dead(Listing):
    """Dead jobs of all queues that nobody has decided about, the newest first."""

    title = "Dead letters"
    heads = ("queue", "id", "task", "tenant", "died", "error")

    async def read(self) -> Reading:
        desk = self.app.dead_letters
        stats = await desk.stats()
        page = await desk.list(status=Status.PENDING, limit=_MOST)
        pending = stats.by_status.get("pending", 0)
        said = f"{pending:,} to decide, {stats.new:,} of the last hour, {stats.due:,} retried soon"
        rows = [Row(f"{one.queue}/{one.id}", _dead_cells(one), "", one) for one in page.items]
        return Reading(said, rows)

    async def told(self, row: Row) -> str | None:
        """Each of its failures."""
        letter: DeadLetter = row.about
        whose = f"{letter.queue}/{letter.task} {letter.id} of {letter.tenant or 'no tenant'}"
        return "\n".join([whose, "", *_failures(letter.errors)])

    def deeds(self, row: Row) -> Sequence[Deed]:
        """Decide about it."""
        letter, desk, by = row.about, self.app.dead_letters, {"by": self.by, "reason": "monitor"}
        name = f"job {letter.id} of {letter.queue}"
        return [
            Deed(
                key="r",
                words="retry as new",
                effect=f"Make a new job of {name}?",
                do=lambda: desk.retry_as_new(letter.queue, letter.id, **by),
            ),
            Deed(
                key="s",
                words="resolve",
                effect=f"Mark {name} as resolved by hand?",
                do=lambda: desk.resolve(letter.queue, letter.id, **by),
            ),
            Deed(
                key="d",
                words="discard",
                effect=f"Give {name} up?",
                do=lambda: desk.discard(letter.queue, letter.id, **by),
            ),
        ]


def _dead_cells(one: DeadLetter) -> Sequence[str]:
    error = plain(f"{one.error.code or one.error.name}: {one.error.message}")
    died = instant(one.died_at) or ""
    return one.queue, one.id, one.task, one.tenant or "", died, error


def _failures(errors: Sequence[ErrorRecord]) -> list[str]:
    found: list[str] = []
    for error in errors:
        said = f"attempt {error.attempt}: {error.code or error.name}: {error.message}"
        found += [said, error.stack or "", ""]
    return found
