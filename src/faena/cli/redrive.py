"""Commands that redrive dead jobs: retry many of them as new jobs, at a rate."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.text import Text

from faena.cli import session
from faena.cli.app_lookup import app_and_queue, find_app, find_queue
from faena.cli.argument import RATE, Whole, common, example, split, words
from faena.cli.dlq import chosen, decision, dlq, filters
from faena.cli.output import Output, counted, instant, table
from faena.cli.progress import progress
from faena.deadletter.redrive import MOST_CANARIES
from faena.deadletter.redrive_view import UNDER_WAY, RedriveView, Report
from faena.errors import InvalidTransition
from faena.limits import Limit


@click.command(
    epilog=example(
        "faena dlq redrive shop.tasks:app mail --error ETIMEDOUT --rate 50/s --canary 10",
        "faena dlq redrive mail --resume 4f2a90c1d3e5",
        "faena dlq redrive mail --stop 4f2a90c1d3e5",
    )
)
@words("[MODULE:APP] QUEUE")
@filters
@click.option("--rate", type=RATE, help="The most jobs per time: 50/s, 100/min.")
@click.option(
    "--canary",
    type=Whole(0, MOST_CANARIES),
    default=0,
    help="Retry this many first, and the others when all of these have completed.",
)
@click.option("--failures", type=Whole(0), help="Stop when more than this many die again.")
@click.option("--resume", metavar="ID", help="Continue a redrive that was stopped or interrupted.")
@click.option("--stop", metavar="ID", help="Stop a redrive, wherever it runs.")
@decision
@common
@click.pass_obj
def redrive(
    output: Output,
    words: tuple[str, ...],
    *,
    resume: str | None,
    stop: str | None,
    reason: str | None,
    rate: Limit | None,
    **given: Any,
) -> None:
    """Retry all pending dead jobs that match the filters as new jobs, oldest first, at a rate.

    --resume continues an interrupted redrive.
    """
    target, (name,) = split(words, "QUEUE")
    _check_alone(click.get_current_context())
    app = find_app(target)
    queue = find_queue(app, name).name
    desk = app.dead_letters

    def work(report: Report) -> Awaitable[RedriveView]:
        if stop is not None:
            return desk.stop_redrive(queue, stop)
        if resume is not None:
            return desk.resume_redrive(queue, resume, report=report)
        why = reason or "redrive"
        return desk.redrive(queue, rate=rate, reason=why, report=report, **given)

    with _watched(output, f"redriving {name}") as report:
        view = session.run(app, lambda: work(report))
    output.say(view, _sentence(view))
    if view.state == "failed":
        raise InvalidTransition(
            f"redrive {view.id} failed: {counted(view.died, 'job')} died again", op="redrive"
        )


def _check_alone(ctx: click.Context) -> None:
    """Refuse other options with --resume or --stop: a redrive keeps those it was started with."""
    said = click.core.ParameterSource.COMMANDLINE
    given = {
        option.name: option.opts[0]
        for option in ctx.command.params
        if option.name not in {"words", "json", "debug"}
        and ctx.get_parameter_source(option.name or "") is said
    }
    told = given.get("resume") or given.get("stop")
    others = [option for option in given.values() if option != told]
    if told and others:
        raise click.UsageError(
            f"{told} must not be combined with {' and '.join(others)}: "
            "a redrive keeps the options it was started with"
        )


@click.command(epilog=example("faena dlq redrives shop.tasks:app mail"))
@words("[MODULE:APP] QUEUE")
@common
@click.pass_obj
def redrives(output: Output, words: tuple[str, ...]) -> None:
    """Show the last redrives of a queue, newest first."""
    app, queue, _ = app_and_queue(words)
    found = session.run(app, lambda: app.dead_letters.redrives(queue.name))
    heads = ("id", "state", "new jobs", "dead again", "canary", "rate", "begun", "by", "reason")

    def row(one: RedriveView) -> tuple[object, ...]:
        begun = instant(one.begun_at) or ""
        counts = one.moved, one.died, one.canary
        return one.id, one.state, *counts, one.rate or "", begun, one.by, one.reason

    output.list(found, lambda console: console.print(table(heads, map(row, found))))


@contextmanager
def _watched(output: Output, what: str) -> Generator[Report]:
    """A progress bar of new jobs, for one redrive after another.

    Ctrl-C stops only the watching: workers continue the redrive.
    """
    seen: dict[str, RedriveView] = {}
    try:
        with progress(output, what) as advance:

            def report(view: RedriveView) -> None:
                before = seen.get(view.id)
                advance(view.moved - (before.moved if before else 0))
                seen[view.id] = view

            yield report
    except KeyboardInterrupt:
        left = [view for view in seen.values() if view.state in UNDER_WAY]
        raise KeyboardInterrupt("; ".join(map(_farewell, left))) from None


def _farewell(view: RedriveView) -> str:
    return (
        f"workers of {view.queue} continue redrive {view.id}: "
        f"`faena dlq redrive {view.queue} --stop {view.id}` stops it"
    )


def _sentence(view: RedriveView) -> str:
    """What is known: deaths are counted as they happen, completions are not."""
    told = f"redrive {view.id}: {view.state}, {counted(view.moved, 'new job')} enqueued"
    if not view.moved:
        return told
    waiting = f", {view.waiting} canaries not finished" if view.waiting else ""
    return (
        f"{told}, {view.died} dead again so far{waiting}; the others may still wait or run: "
        f"`faena dlq redrives {view.queue}` shows later deaths"
    )


@click.command(
    "retry-failed",
    epilog=example("faena retry-failed shop.tasks:app", "faena retry-failed mail --rate 50/s"),
)
@words("[MODULE:APP] [QUEUE]...")
@click.option("--rate", type=RATE, help="The most jobs per time: 50/s, 100/min.")
@decision
@common
@click.pass_obj
def retry_failed(
    output: Output, words: tuple[str, ...], rate: Limit | None, by: str, reason: str | None
) -> None:
    """Redrive all pending dead jobs of all queues, or of the given ones: retry them as new jobs.

    `dlq redrive` does this for one queue, with filters.
    """
    app, queues = chosen(words)
    why = reason or "retry-failed"

    async def work(report: Report) -> list[RedriveView]:
        desk = app.dead_letters
        return [
            await desk.redrive(queue, rate=rate, by=by, reason=why, report=report)
            for queue in queues or app.queues
        ]

    with _watched(output, "retrying") as report:
        done = session.run(app, lambda: work(report))
    output.list(done, lambda console: console.print(Text("\n".join(_lines(done)))))


def _lines(views: Sequence[RedriveView]) -> Iterator[str]:
    """What each redrive has done so far."""
    for view in views:
        again = f", {view.died} dead again so far" if view.died else ""
        end = "" if view.state == "done" else f", then {view.state}"
        yield f"{view.queue}: {counted(view.moved, 'new job')} enqueued{again}{end}"
    if any(view.moved for view in views):
        yield "new jobs may still wait or run: `faena dlq redrives QUEUE` shows those that died"


dlq.add_command(redrive)
dlq.add_command(redrives)
