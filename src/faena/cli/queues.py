"""Commands on whole queues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import click
from rich.text import Text

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import app_and_queue, app_and_queues, find_app, find_queue
from faena.cli.argument import DURATION, LASTING, by, common, confirm, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, counted, instant, table
from faena.cli.progress import progress
from faena.cli.settings import readable
from faena.engine.overview import Hold, Overview
from faena.engine.settings import read_settings
from faena.queue import Queue
from faena.states import FINISHED, State

T = TypeVar("T")

_COUNTED = (
    State.READY,
    State.DELAYED,
    State.BLOCKED,
    State.RUNNING,
    State.COMPLETED,
    State.DEAD,
    State.CANCELLED,
)
_SPARE = ("dealt with", "cancelled", "blocked", "completed", "holds")
"""Columns to leave out on a narrow terminal, in this order."""


@click.command(
    epilog=example("faena queues shop.tasks:app", "faena queues --json | jq .items[].counts")
)
@words("[MODULE:APP]")
@common
@click.pass_obj
def queues(output: Output, words: tuple[str, ...]) -> None:
    """Show every queue: jobs per state, holds, workers.

    `dead` counts dead jobs that are still pending; see `faena dlq`.
    """
    app = find_app(split(words)[0])
    found = session.run(app, lambda: _each(app.queues.values(), Queue.overview))
    heads = ["queue", *(state.value for state in _COUNTED), "dealt with", "workers", "holds"]
    told = [_document(app, one) for one in found]
    drawn = partial(table, heads, map(_row, found), spare=_SPARE)
    output.list(told, lambda console: console.print(drawn()))


def _document(app: Faena, seen: Overview) -> dict[str, Any]:
    """The JSON of a queue; one that is not declared on the server yet has no settings."""
    is_used, is_fair = "version" in seen.settings, app.queues[seen.queue].options.is_fair
    settings = readable(read_settings(seen.settings, is_fair=is_fair)) if is_used else None
    return {**document(seen), "settings": settings}


def _row(seen: Overview) -> list[object]:
    counts = [seen.counts.get(state.value, 0) for state in _COUNTED]
    dealt, holds = sum(seen.dealt_with.values()), ", ".join(map(_hold, seen.holds))
    return [seen.queue, *counts, dealt, len(seen.workers), holds]


def _hold(hold: Hold) -> str:
    return f"{hold.reason} until {instant(hold.until)}" if hold.until else hold.reason


async def _each(chosen: Iterable[Queue], work: Callable[[Queue], Awaitable[T]]) -> list[T]:
    return [await work(queue) for queue in chosen]


# -- holds --------------------------------------------------------------------------------------


def _choose(words: Sequence[str], *, all_queues: bool) -> tuple[Faena, list[Queue]]:
    """The given queues, or all of them with --all."""
    target, names = split(words, rest="QUEUE")
    if bool(names) == all_queues:
        raise click.UsageError("give QUEUE or --all, and not both")
    app = find_app(target)
    return app, [find_queue(app, name) for name in names] or list(app.queues.values())


@click.command(
    epilog=example(
        "faena pause shop.tasks:app mail --for 5m", "faena pause --all --reason maintenance"
    )
)
@words("[MODULE:APP] [QUEUE]...")
@click.option("--all", "all_queues", is_flag=True, help="Every queue of the app.")
@click.option("--for", "lasting", type=LASTING, help="End the pause after this time: 5m, 2h.")
@click.option(
    "--reason",
    default="pause",
    show_default=True,
    help="Why; `resume` ends the hold with the same reason.",
)
@by
@common
@click.pass_obj
def pause(
    output: Output,
    words: tuple[str, ...],
    *,
    all_queues: bool,
    lasting: str | None,
    reason: str,
    by: str,
) -> None:
    """Pause queues: no more jobs start; running jobs continue, and new ones are accepted."""
    app, chosen = _choose(words, all_queues=all_queues)

    async def hold(queue: Queue) -> dict[str, object]:
        is_new = await queue.pause(reason=reason, lasting=lasting, by=by)
        return {"queue": queue.name, "paused": True, "reason": reason, "is_new": is_new}

    done = session.run(app, lambda: _each(chosen, hold))
    for_long = f" for {lasting}" if lasting else ""
    line = f"paused{for_long}: {_names(chosen)}"
    output.list(done, lambda console: console.print(Text(line)))


@click.command(epilog=example("faena resume shop.tasks:app mail", "faena resume --all"))
@words("[MODULE:APP] [QUEUE]...")
@click.option("--all", "all_queues", is_flag=True, help="Every queue of the app.")
@click.option("--reason", default="pause", show_default=True, help="The hold to end.")
@by
@common
@click.pass_obj
def resume(
    output: Output, words: tuple[str, ...], *, all_queues: bool, reason: str, by: str
) -> None:
    """End a pause; holds with other reasons stay, and are shown.

    Exit code 1 if no hold was ended but others remain.
    """
    app, chosen = _choose(words, all_queues=all_queues)

    async def release(queue: Queue) -> dict[str, Any]:
        ended = await queue.resume(reason=reason, by=by)
        left = [hold.reason for hold in (await queue.overview()).holds]
        return {"queue": queue.name, "resumed": ended, "holds": left}

    done = session.run(app, lambda: _each(chosen, release))

    def view(console: Any) -> None:
        for one in done:
            word = "resumed" if one["resumed"] else f"had no hold {reason!r}"
            left = f"; still held: {', '.join(one['holds'])}" if one["holds"] else ""
            console.print(Text(f"{one['queue']}: {word}{left}"))

    output.list(done, view)
    left = list(dict.fromkeys(hold for one in done for hold in one["holds"]))
    if left and not any(one["resumed"] for one in done):
        raise click.ClickException(
            f"nothing was resumed: there is no hold {reason!r}; use --reason with one of: "
            f"{', '.join(left)}"
        )


def _names(chosen: Sequence[Queue]) -> str:
    return ", ".join(queue.name for queue in chosen)


# -- removing -----------------------------------------------------------------------------------


@click.command(
    epilog=example(
        "faena clean shop.tasks:app --age 7d",
        "faena clean shop.tasks:app mail --state dead --age 90d --yes",
    )
)
@words("[MODULE:APP] [QUEUE]...")
@click.option(
    "--state",
    "states",
    type=click.Choice(sorted(state.value for state in FINISHED)),
    multiple=True,
    help="Only jobs in this state.  [default: completed and cancelled]",
)
@click.option("--age", type=DURATION, required=True, help="Only jobs that finished longer ago: 7d.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation about dead jobs.")
@by
@common
@click.pass_obj
def clean(
    output: Output, words: tuple[str, ...], *, states: tuple[str, ...], age: str, yes: bool, by: str
) -> None:
    """Remove finished jobs older than --age, of all queues or of the given ones.

    Dead jobs are kept unless --state dead is given, so that they can still be retried.
    """
    app, chosen = app_and_queues(words)
    wanted = states or (State.COMPLETED.value, State.CANCELLED.value)
    if State.DEAD.value in wanted:
        confirm(f"Remove dead jobs of {_names(chosen)}, including pending ones?", yes=yes)

    async def sweep(queue: Queue) -> dict[str, Any]:
        removed = {
            state: await queue.clean(state, age=age, report=advance, by=by)
            for state in dict.fromkeys(wanted)
        }
        return {"queue": queue.name, "removed": sum(removed.values()), "states": removed}

    with progress(output, "cleaning") as advance:
        done = session.run(app, lambda: _each(chosen, sweep))
    lines = "\n".join(
        f"{counted(one['removed'], 'job')} removed from {one['queue']}" for one in done
    )
    output.list(done, lambda console: console.print(Text(lines)))


@click.command(epilog=example("faena drain shop.tasks:app mail --yes"))
@words("[MODULE:APP] QUEUE")
@click.option("--keep-delayed", is_flag=True, help="Remove only ready jobs.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@by
@common
@click.pass_obj
def drain(
    output: Output, words: tuple[str, ...], *, keep_delayed: bool, yes: bool, by: str
) -> None:
    """Remove all waiting jobs; running and finished ones stay."""
    app, queue, _ = app_and_queue(words)
    name = queue.name
    confirm(f"Remove all waiting jobs of {name}?", yes=yes)
    with progress(output, f"draining {name}") as advance:
        removed = session.run(
            app, lambda: queue.drain(is_delayed_too=not keep_delayed, report=advance, by=by)
        )
    told = f"{counted(removed, 'waiting job')} removed from {name}"
    output.say({"queue": name, "removed": removed}, told)


@click.command(epilog=example("faena obliterate shop.tasks:app mail --yes"))
@words("[MODULE:APP] QUEUE")
@click.option("--force", is_flag=True, help="Even while jobs are running.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@by
@common
@click.pass_obj
def obliterate(output: Output, words: tuple[str, ...], *, force: bool, yes: bool, by: str) -> None:
    """Remove a queue with everything in it: jobs, results, holds, statistics."""
    app, queue, _ = app_and_queue(words)
    name = queue.name
    confirm(f"Remove {name} with everything in it?", yes=yes)
    with progress(output, f"obliterating {name}"):
        session.run(app, lambda: queue.obliterate(force=force, by=by))
    output.say({"queue": name, "obliterated": True}, f"{name} was removed with all its jobs")
