"""`faena events`: follow the events of jobs."""

from __future__ import annotations

import sys
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import msgspec

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import find_app, find_queue
from faena.cli.argument import Whole, common, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, plain
from faena.errors import ConfigError
from faena.telemetry.events import Event, read_kinds, read_since
from faena.values.duration import to_s


def _since(_ctx: click.Context, _param: click.Parameter, text: str) -> str | datetime:
    """now, start, a duration ago, an instant with a time zone, or the cursor of an event."""
    try:
        return datetime.now(UTC) - timedelta(seconds=to_s("since", text))
    except ConfigError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = text
    try:
        read_since(at)
    except ConfigError:
        valid = "now, start, how long ago (10m), an instant with a time zone or an event's cursor"
        raise click.BadParameter(f"it must be {valid}, got {text!r}") from None
    return at


@click.command(
    epilog=example(
        "faena events shop.tasks:app mail --kind dead --kind retried",
        "faena events --since 10m --json | jq -r 'select(.by) | .name'",
    )
)
@words("[MODULE:APP] [QUEUE]...")
@click.option(
    "--since",
    callback=_since,
    default="now",
    show_default=True,
    help="now, start (the oldest kept), how long ago (10m), an instant, or an event's cursor.",
)
@click.option(
    "--kind", "kinds", multiple=True, help="Only events of this kind, such as dead; repeatable."
)
@click.option("--limit", type=Whole(1), help="Stop after this many events.")
@common
@click.pass_obj
def events(
    output: Output,
    words: tuple[str, ...],
    *,
    since: str | datetime,
    kinds: tuple[str, ...],
    limit: int | None,
) -> None:
    """Follow the events of all queues and upstreams, or of the given queues, until Ctrl-C.

    One line per event; with --json, each line is an object. Gaps are always reported.
    """
    target, names = split(words, rest="QUEUE")
    read_kinds(kinds or None)
    app = find_app(target)
    queues = [find_queue(app, name).name for name in names] or None
    given: dict[str, Any] = {"since": since, "kinds": kinds or None, "details": True}
    try:
        session.run(app, lambda: _follow(app, output, queues, given, limit))
    except KeyboardInterrupt:  # the normal end
        return


async def _follow(
    app: Faena, output: Output, queues: list[str] | None, given: dict[str, Any], limit: int | None
) -> None:
    told = 0
    async with aclosing(app.events(queues, **given)) as stream:
        async for event in stream:
            sys.stdout.write(_object(event) if output.is_json else _line(event))
            sys.stdout.flush()
            told += 1
            if told == limit:
                return


def _object(event: Event) -> str:
    told: dict[str, Any] = document(event)
    for name in event.apart:  # known only through the cursor
        del told[name]
    return msgspec.json.encode(told | {"cursor": event.cursor}).decode() + "\n"


def _line(event: Event) -> str:
    at = datetime.fromtimestamp(event.at / 1e6, UTC)
    where = f"{event.queue}/{event.task}" if event.task else event.queue
    missed = f"{event.missed} batches missed" if event.missed else ""
    who = f"at {event.worker}" if event.worker else f"by {event.by}" if event.by else ""
    of = f"of {event.tenant}" if event.tenant else ""
    why = f"({event.reason})" if event.reason else ""
    parts = (where, event.job or event.value or "", of, who, why, missed)
    said = " ".join(part for part in parts if part)
    when = at.isoformat(" ", "milliseconds").removesuffix("+00:00")
    return plain(f"{when} {event.name:<14} {said}") + "\n"
