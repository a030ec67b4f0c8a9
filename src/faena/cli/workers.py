"""`faena workers`: the workers, their queues, and the jobs they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from faena.cli import session
from faena.cli.app_lookup import app_and_queues
from faena.cli.argument import Whole, common, example, words
from faena.cli.json_output import iso
from faena.cli.output import Output, instant, plain, table
from faena.engine.overview import WorkerView
from faena.inspection.workers import merged
from faena.job import JobView
from faena.queue import Queue
from faena.states import State

_PAGE: Final = 200
_SHOWN: Final = 5
_HEADS: Final = (
    *("worker", "host", "pid", "version", "since", "queues"),
    *("listed until", "running", "busy since", "what it does"),
)
_SPARE: Final = ("version", "since", "host", "listed until", "busy since", "pid", "queues")


@click.command(epilog=example("faena workers shop.tasks:app", "faena workers mail --json"))
@words("[MODULE:APP] [QUEUE]...")
@click.option(
    "--limit",
    type=Whole(1, 10_000),
    default=1000,
    show_default=True,
    help="Running jobs to read per queue; a + marks a number that may be larger.",
)
@common
@click.pass_obj
def workers(output: Output, words: tuple[str, ...], limit: int) -> None:
    """Show the workers of all queues, or of the given ones: host, queues and running jobs."""
    app, chosen = app_and_queues(words)
    found = session.run(app, lambda: _look(chosen, limit))
    rows = [_row(one) for one in found.values()]

    def view(console: Any) -> None:
        console.print(table(_HEADS, rows, spare=_SPARE, none="no worker runs"))

    output.list(map(_document, found.values()), view)


class _Seen:
    """What the queues know about one worker."""

    def __init__(self, name: str) -> None:
        self.about = WorkerView(name)
        self.queues: list[str] = []
        self.jobs: list[JobView] = []
        self.is_cut = False
        """Whether it may run more jobs: not all running jobs were read."""

    def serves(self, queue: str, about: WorkerView) -> None:
        """Add what one of its queues knows."""
        self.queues.append(queue)
        (self.about,) = merged([self.about, about])

    @property
    def busy_since(self) -> int | None:
        """When the oldest of its running jobs was claimed."""
        return min((job.started_at for job in self.jobs if job.started_at), default=None)


async def _look(queues: Sequence[Queue], limit: int) -> dict[str, _Seen]:
    found: dict[str, _Seen] = {}
    for queue in queues:
        for about in (await queue.overview()).workers:
            found.setdefault(about.name, _Seen(about.name)).serves(queue.name, about)
        jobs, is_cut = await _running(queue, limit)
        for job in jobs:
            if job.worker is not None:
                found.setdefault(job.worker, _Seen(job.worker)).jobs.append(job)
        for seen in found.values():
            seen.is_cut |= is_cut
    return found


async def _running(queue: Queue, limit: int) -> tuple[list[JobView], bool]:
    """Some of the running jobs, and whether there are more."""
    jobs: list[JobView] = []
    cursor: str | None = ""
    while cursor is not None and len(jobs) < limit:
        size = min(_PAGE, limit - len(jobs))
        page = await queue.jobs(State.RUNNING, limit=size, cursor=cursor or None)
        jobs, cursor = [*jobs, *page.jobs], page.cursor
    return jobs, cursor is not None


def _document(seen: _Seen) -> dict[str, Any]:
    return {
        "worker": seen.about.name,
        "host": seen.about.host,
        "pid": seen.about.pid,
        "version": seen.about.version,
        "since": iso(seen.about.since),
        "queues": seen.queues,
        "listed_until": iso(seen.about.listed_until),
        "running": len(seen.jobs),
        "is_cut": seen.is_cut,
        "busy_since": iso(seen.busy_since),
        "jobs": [
            {
                "id": job.id,
                "queue": job.queue,
                "task": job.task,
                "tenant": job.tenant,
                "started_at": iso(job.started_at),
            }
            for job in seen.jobs
        ],
    }


def _row(seen: _Seen) -> tuple[object, ...]:
    shown = [f"{job.queue}/{job.task} {job.id}" for job in seen.jobs[:_SHOWN]]
    more = [f"… ({len(seen.jobs)})"] if len(seen.jobs) > _SHOWN else []
    queues = ", ".join(seen.queues) or "(no recent heartbeat)"
    about, busy = seen.about, instant(seen.busy_since) or "-"
    said = (about.host or "-", about.pid or "-", about.version or "-", instant(about.since) or "-")
    jobs = plain("\n".join([*shown, *more]))
    until, number = instant(about.listed_until) or "-", len(seen.jobs)
    running = f"{number}+" if seen.is_cut else number
    return about.name, *said, queues, until, running, busy, jobs
