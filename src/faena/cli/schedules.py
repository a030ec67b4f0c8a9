"""Commands on schedules. Payloads are shown only on request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

import click
import msgspec
from rich.console import Console

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import find_app
from faena.cli.argument import DURATION, ListedCommands, Whole, by, common, example, split, words
from faena.cli.json_output import document, iso, seconds
from faena.cli.output import Output, facts, instant, table
from faena.errors import PayloadError
from faena.scheduling.due import Mark
from faena.scheduling.options import OVERLAPS, TIMINGS
from faena.scheduling.options import iso as readable
from faena.scheduling.view import ScheduleView
from faena.values.duration import describe
from faena.values.numbers import read_whole

F = TypeVar("F", bound=Callable[..., Any])

_HEADS: Final = ("schedule", "queue", "when", "next", "last", "fired", "state")
_NOTHING: Final = "none"
"""The value of an option that removes a bound."""


@click.group(
    cls=ListedCommands,
    epilog=example(
        "faena schedules shop.tasks:app",
        "faena schedules show nightly",
        "faena schedules edit nightly --cron '0 3 * * *' --tz Europe/Madrid --by ana",
        "faena schedules create late --task mail/send --at 2026-05-01T09:00",
    ),
)
def schedules() -> None:
    """List, show, create or change schedules.

    MODULE:APP alone lists them; every command takes --json.
    """


@schedules.command("list", epilog=example("faena schedules list shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def list_(output: Output, words: tuple[str, ...]) -> None:
    """List all schedules, the next to fire first, including those no longer declared in code."""
    target, _ = split(words)
    app = find_app(target)
    found = session.run(app, app.schedules.list)

    def view(console: Console) -> None:
        spare = ("fired", "last", "queue")
        console.print(table(_HEADS, map(_row, found), spare=spare, none="no schedule"))

    output.list(map(_document, found), view)


@schedules.command(epilog=example("faena schedules show shop.tasks:app nightly"))
@words("[MODULE:APP] NAME")
@click.option(
    "--next",
    "number",
    type=Whole(1, 1000),
    default=5,
    show_default=True,
    help="How many of the next instants to show.",
)
@click.option("--payload", is_flag=True, help="Show the payload of its jobs as well.")
@common
@click.pass_obj
def show(output: Output, words: tuple[str, ...], number: int, *, payload: bool) -> None:
    """Show one schedule and its next instants."""
    app, name = _find(words)

    async def look() -> tuple[ScheduleView, list[int]]:
        coming = await app.schedules.next(name, number)
        return await app.schedules.get(name), [round(one.timestamp() * 1e6) for one in coming]

    view, coming = session.run(app, look)
    zone = view.terms["tz"]
    told = {**_document(view, is_open=payload), "coming": [_both(one, zone) for one in coming]}
    output.show(told, lambda console: _draw(console, view, coming, is_open=payload))


def _timed(command: F) -> F:
    """The options for when a schedule fires and what jobs it enqueues."""
    for option in reversed(
        (
            click.option("--cron", help="A cron expression: 5 fields, or 6 with seconds first."),
            click.option("--every", type=DURATION, help="An interval: 90s, 5m, 6h."),
            click.option(
                "--at", multiple=True, help="An instant such as 2026-12-24T18:00; repeatable."
            ),
            click.option("--tz", help="The time zone, such as Europe/Madrid."),
            click.option("--jitter", help="The longest random delay of each job; none: no delay."),
            click.option("--start", help="The earliest instant; none: no bound."),
            click.option("--end", help="The latest instant; none: no bound."),
            click.option("--count", help="The number of instants; none: no bound."),
            click.option(
                "--overlap", type=click.Choice(OVERLAPS), help="If its previous job is still live."
            ),
            click.option(
                "--missed",
                help="The missed instants to fire after an outage: skip (none), latest, all, "
                "or all(10) for the latest 10.",
            ),
            click.option("--tenant", help="The tenant of its jobs; none: no tenant."),
            click.option("--key", help="The key of its jobs; none: no key."),
            click.option("--priority", help="The priority of its jobs: 1 to 100, or a level."),
            click.option("--payload", help="The payload of its jobs, as JSON."),
        )
    ):
        command = option(command)
    return command


@schedules.command(
    epilog=example(
        "faena schedules create late --task mail/send --payload 7 --at 2026-05-01T09:00",
        "faena schedules create weekly --task mail/report --cron '0 9 * * MON' --tz Europe/Madrid",
    )
)
@words("[MODULE:APP] NAME")
@click.option("--task", required=True, metavar="QUEUE/TASK", help="The task to run.")
@_timed
@by
@common
@click.pass_obj
def create(output: Output, words: tuple[str, ...], task: str, by: str, **given: Any) -> None:
    """Create a schedule that is not declared in code."""
    terms = _terms(given)
    if sum(name in terms for name in TIMINGS) != 1:
        raise click.UsageError("give one of --cron, --every and --at")

    def work(app: Faena, name: str) -> Awaitable[ScheduleView]:
        return app.schedules.create(name, task, by=by, **terms)

    try:
        _decide(output, words, work)
    except PayloadError as error:
        if "payload" in terms:
            raise
        raise PayloadError(f"{error}, with --payload", op=error.op) from None


@schedules.command(
    epilog=example(
        "faena schedules edit nightly --cron '0 3 * * *' --tz Europe/Madrid --by ana",
        "faena schedules edit nightly --end none --count 10",
    )
)
@words("[MODULE:APP] NAME")
@_timed
@by
@common
@click.pass_obj
def edit(output: Output, words: tuple[str, ...], by: str, **given: Any) -> None:
    """Change options of a schedule, for all workers; the values in code no longer apply to them."""
    terms = _terms(given)
    if not terms:
        raise click.UsageError("give at least one change, such as --cron '0 3 * * *'")
    _decide(output, words, lambda app, name: app.schedules.edit(name, by=by, **terms))


@schedules.command(epilog=example("faena schedules reset nightly tz cron"))
@words("[MODULE:APP] NAME [TERM]...")
@by
@common
@click.pass_obj
def reset(output: Output, words: tuple[str, ...], by: str) -> None:
    """Return options of a schedule, or all of them, to the values in code."""
    target, (name, *terms) = split(words, "NAME", rest="TERM")
    app = find_app(target)
    view = session.run(app, lambda: app.schedules.reset(name, *terms, by=by))
    output.show(_document(view), lambda console: _draw(console, view))


@schedules.command(epilog=example("faena schedules pause nightly --by ana"))
@words("[MODULE:APP] NAME")
@by
@common
@click.pass_obj
def pause(output: Output, words: tuple[str, ...], by: str) -> None:
    """Pause a schedule until it is resumed; instants that pass meanwhile do not count as missed."""
    _decide(output, words, lambda app, name: app.schedules.pause(name, by=by))


@schedules.command(epilog=example("faena schedules resume nightly"))
@words("[MODULE:APP] NAME")
@by
@common
@click.pass_obj
def resume(output: Output, words: tuple[str, ...], by: str) -> None:
    """Resume a paused schedule, from its next instant on."""
    _decide(output, words, lambda app, name: app.schedules.resume(name, by=by))


@schedules.command(epilog=example("faena schedules run nightly"))
@words("[MODULE:APP] NAME")
@by
@common
@click.pass_obj
def run(output: Output, words: tuple[str, ...], by: str) -> None:
    """Enqueue a job of the schedule now; its instants stay the same."""
    app, name = _find(words)
    handle = session.run(app, lambda: app.schedules.run(name, by=by))
    output.say({"queue": handle.queue, "id": handle.id}, f"job {handle.id} on queue {handle.queue}")


@schedules.command(epilog=example("faena schedules remove shop.tasks:app old"))
@words("[MODULE:APP] NAME")
@by
@common
@click.pass_obj
def remove(output: Output, words: tuple[str, ...], by: str) -> None:
    """Remove a schedule that is not declared in code; its jobs stay."""
    app, name = _find(words)
    session.run(app, lambda: app.schedules.remove(name, by=by))
    output.say({"removed": name}, f"schedule {name} was removed")


def _find(given: Sequence[str]) -> tuple[Faena, str]:
    target, (name,) = split(given, "NAME")
    return find_app(target), name


def _decide(
    output: Output,
    given: Sequence[str],
    work: Callable[[Faena, str], Awaitable[ScheduleView]],
) -> None:
    """Change a schedule, and show the result."""
    app, name = _find(given)
    view = session.run(app, lambda: work(app, name))
    output.show(_document(view), lambda console: _draw(console, view))


def _terms(given: dict[str, Any]) -> dict[str, Any]:
    terms = {name: value for name, value in given.items() if value not in {None, ()}}
    for name in ("jitter", "start", "end", "count", "tenant", "key"):
        if terms.get(name) == _NOTHING:
            terms[name] = None
    for name in ("count", "priority"):
        if isinstance(terms.get(name), str):
            terms[name] = read_whole(terms[name])
    if "at" in terms:
        terms["at"] = list(terms["at"])
    if "payload" in terms:
        try:
            text = terms["payload"].encode(errors="surrogateescape")
            terms["payload"] = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise click.UsageError(f"--payload must be JSON: {error}") from None
    return terms


# -- showing ------------------------------------------------------------------------------------


def _row(view: ScheduleView) -> tuple[object, ...]:
    return (
        view.name,
        view.queue,
        view.when,
        instant(view.next_at, view.terms["tz"]) or "-",
        instant(view.last_at, view.terms["tz"]) or "-",
        view.fired,
        view.state
        if view.is_declared or view.declared_at is None
        else f"{view.state}, not in code",
    )


def _document(view: ScheduleView, *, is_open: bool = False) -> dict[str, Any]:
    """The JSON of a schedule, without the payload unless asked for: it may be confidential."""
    terms = {name: value for name, value in view.terms.items() if name != "payload"}
    terms["jitter_s"] = seconds(terms.pop("jitter"))
    terms |= {name: iso(terms[name]) for name in ("start", "end")}
    terms["when"] = _when(**terms["when"])
    carried = {"payload": msgspec.Raw(view.terms["payload"].encode())} if is_open else {}
    zone = view.terms["tz"]
    local = {"next_local": _local(view.next_at, zone), "last_local": _local(view.last_at, zone)}
    return {**document(view), **local, "terms": {**terms, **carried}}


def _when(
    cron: str | None = None, every: int | None = None, at: Sequence[int] = ()
) -> dict[str, Any]:
    if cron is not None:
        return {"cron": cron}
    return {"every_s": seconds(every)} if every is not None else {"at": list(map(iso, at))}


def _local(us: int | None, zone: str) -> str | None:
    """An instant as local time in a time zone."""
    if us is None:
        return None
    return datetime.fromtimestamp(us / 1e6, ZoneInfo(zone)).isoformat()


def _both(us: int, zone: str) -> dict[str, str | None]:
    return {"at": iso(us), "local": _local(us, zone)}


def _shown(us: int | None, zone: str) -> str | None:
    """An instant in the schedule's time zone, and in UTC if that differs."""
    own = instant(us, zone)
    return own if own is None or zone == "UTC" else f"{own}  ({instant(us)})"


def _draw(
    console: Console, view: ScheduleView, coming: Sequence[int] = (), *, is_open: bool = False
) -> None:
    terms, zone = view.terms, view.terms["tz"]
    rows: list[tuple[str, object]] = [
        ("schedule", view.name),
        ("queue", view.queue),
        ("task", view.task),
        ("when", view.when),
        ("state", view.state if view.paused is None else f"paused {_mark(view.paused)}"),
        *(("" if number else "next", _shown(one, zone)) for number, one in enumerate(coming)),
        *([] if coming else [("next", _shown(view.next_at, zone))]),
        ("last", _shown(view.last_at, zone)),
        ("last job", view.last_job),
        ("fired", view.fired),
        ("jitter", describe(terms["jitter"]) if terms["jitter"] else None),
        *((name, terms[name] and readable(terms[name])) for name in ("start", "end")),
        *((name, terms[name]) for name in ("count", "overlap", "missed", "tenant", "key")),
        ("priority", terms["priority"]),
        ("payload", terms["payload"] if is_open else None),
        *((f"edited {name}", _mark(mark)) for name, mark in view.edits.items()),
        ("declared", _declared(view)),
    ]
    console.print(facts(rows))


def _mark(mark: Mark) -> str:
    return f"by {mark.by} at {instant(mark.at)}"


def _declared(view: ScheduleView) -> str:
    if view.declared_at is None:
        return f"at run time {_mark(view.since)}"
    last = f"last at {instant(view.declared_at)}"
    return f"in code, {last}" if view.is_declared else f"no longer in code, {last}"
