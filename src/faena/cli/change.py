"""Commands that change single jobs: cancel, rerun, promote, change, remove."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click
from rich.console import Console

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import app_and_queue, find_app, find_queue
from faena.cli.argument import DURATION, by, common, confirm, example, split, words
from faena.cli.output import Output, counted, table
from faena.cli.progress import progress
from faena.errors import JobError
from faena.options import priority_of
from faena.producing.handle import Handle
from faena.queue import Queue
from faena.values.numbers import read_whole

Change = Callable[[Handle[Any]], Awaitable[str | None]]


def _change(output: Output, words: Sequence[str], change: Change, done: str) -> None:
    """Do the same to each job; if one is refused, the others are still changed."""
    app, queue, ids = app_and_queue(words, "ID", rest="ID")

    async def change_all() -> list[tuple[str, str | JobError]]:
        return [(job_id, await _try(change, queue.handle(job_id), done)) for job_id in ids]

    outcomes = session.run(app, change_all)
    refused = [answer for _, answer in outcomes if isinstance(answer, JobError)]
    told = [
        {"id": job_id, "outcome": "refused" if isinstance(answer, JobError) else answer}
        | ({"error": str(answer)} if isinstance(answer, JobError) else {})
        for job_id, answer in outcomes
    ]

    def view(console: Console) -> None:
        if len(outcomes) > 1 or not refused:  # else the error line is enough
            console.print(table(("id", "outcome"), map(tuple, outcomes)))

    output.list(told, view)
    if len(refused) == 1:
        raise refused[0]
    if refused:
        said = f"{len(refused)} of {len(outcomes)} jobs were refused, see above"
        raise type(refused[0])(said, op=refused[0].op)


async def _try(change: Change, handle: Handle[Any], done: str) -> str | JobError:
    try:
        return await change(handle) or done
    except JobError as error:
        return error


@click.command(epilog=example("faena cancel shop.tasks:app mail 01JCXYZ 01JCXZA"))
@words("[MODULE:APP] QUEUE ID...")
@by
@common
@click.pass_obj
def cancel(output: Output, words: tuple[str, ...], by: str) -> None:
    """Cancel jobs; the handler of a running job is stopped."""
    _change(output, words, lambda one: one.cancel(by=by), "cancelled")


@click.command(epilog=example("faena rerun shop.tasks:app mail 01JCXYZ"))
@words("[MODULE:APP] QUEUE ID...")
@by
@common
@click.pass_obj
def rerun(output: Output, words: tuple[str, ...], by: str) -> None:
    """Run finished jobs again: the same jobs, with fresh attempts."""
    _change(output, words, lambda one: one.rerun(by=by), "ready")


@click.command(
    epilog=example("faena promote shop.tasks:app mail 01JCXYZ", "faena promote mail --all")
)
@words("[MODULE:APP] QUEUE [ID]...")
@click.option("--all", "is_all", is_flag=True, help="Every job that is delayed now.")
@by
@common
@click.pass_obj
def promote(output: Output, words: tuple[str, ...], *, is_all: bool, by: str) -> None:
    """Make delayed jobs ready now."""
    target, (name, *ids) = split(words, "QUEUE", rest="ID")
    if bool(ids) == is_all:
        raise click.UsageError("give ID or --all, and not both")
    if ids:
        _change(output, words, lambda one: one.promote(by=by), "ready")
        return
    app = find_app(target)
    queue = find_queue(app, name)
    promoted = _promote_all(output, app, queue, by)
    told = f"{counted(promoted, 'job')} of {name} promoted"
    output.say({"queue": name, "promoted": promoted}, told)


def _promote_all(output: Output, app: Faena, queue: Queue, by: str) -> int:
    with progress(output, f"promoting {queue.name}") as advance:
        return session.run(app, lambda: queue.promote_all(report=advance, by=by))


@click.command(
    epilog=example(
        "faena change shop.tasks:app mail 01JCXYZ --delay 10m",
        "faena change mail 01JCXYZ 01JCXZA --priority high",
    )
)
@words("[MODULE:APP] QUEUE ID...")
@click.option("--delay", type=DURATION, help="Run them after this time from now; 0s: now.")
@click.option("--priority", help="1 (soonest) to 100, or a level's name.")
@by
@common
@click.pass_obj
def change(
    output: Output, words: tuple[str, ...], delay: str | None, priority: str | None, by: str
) -> None:
    """Change the delay or the priority of waiting jobs."""
    if delay is None and priority is None:
        raise click.UsageError("give --delay, --priority or both")
    level = None if priority is None else priority_of(read_whole(priority))
    _change(output, words, lambda one: one.change(delay=delay, priority=level, by=by), "changed")


@click.command(epilog=example("faena remove shop.tasks:app mail 01JCXYZ --yes"))
@words("[MODULE:APP] QUEUE ID...")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@by
@common
@click.pass_obj
def remove(output: Output, words: tuple[str, ...], *, yes: bool, by: str) -> None:
    """Remove jobs for good; refused for a running job, or one that a flow or group waits for."""
    _, (name, *ids) = split(words, "QUEUE", "ID", rest="ID")
    confirm(f"Remove {counted(len(ids), 'job')} of {name} for good?", yes=yes)
    _change(output, words, lambda one: one.remove(by=by), "removed")
