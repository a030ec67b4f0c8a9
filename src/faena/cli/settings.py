"""Commands on a queue's settings at run time, named as in `app.queue()`."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import fields
from typing import Any, Final

import click
from rich.console import Console

from faena.cli import session
from faena.cli.app_lookup import find_app, find_queue
from faena.cli.argument import by, common, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, facts
from faena.options import Backpressure, Retain
from faena.options.settings import CHANGEABLE, Settings, check_resettable, parse_setting
from faena.queue import Queue
from faena.values.duration import to_s

_LENGTHS: Final = ("lease", "age_step")


@click.command(
    epilog=example(
        "faena configure shop.tasks:app mail max_running=5 limits=10/s,100/min lease=1m",
        "faena configure mail 'backpressure=soft=100 hard=500' retain=completed=24h",
        "faena configure llm 'limits=600/min, 90000/min of tokens'",
        "faena configure mail max_running=none",
        "faena configure mail",
    )
)
@words("[MODULE:APP] QUEUE [NAME=VALUE]...")
@by
@common
@click.pass_obj
def configure(output: Output, words: tuple[str, ...], by: str) -> None:
    """Show the settings of a queue, or change them at run time, until `reset`.

    Names and values are those of app.queue(); `none` removes a bound. Omitted parts of backpressure
    and retain get their defaults. A change applies to every worker at its next call.
    """
    target, (name, *pairs) = split(words, "QUEUE", rest="NAME=VALUE")
    changes = dict(map(_read, pairs))
    app = find_app(target)
    queue = find_queue(app, name)

    def work() -> Awaitable[Settings]:
        given: Any = changes
        return queue.configure(by=by, **given) if changes else queue.settings()

    _show(output, queue, session.run(app, work))


@click.command(epilog=example("faena reset shop.tasks:app mail", "faena reset mail limits lease"))
@words("[MODULE:APP] QUEUE [NAME]...")
@by
@common
@click.pass_obj
def reset(output: Output, words: tuple[str, ...], by: str) -> None:
    """Return settings of a queue, or all of them, to the values in code; `shards` too."""
    target, (name, *names) = split(words, "QUEUE", rest="NAME")
    check_resettable(names)
    app = find_app(target)
    queue = find_queue(app, name)
    _show(output, queue, session.run(app, lambda: queue.reset(*names, by=by)))


def _read(pair: str) -> tuple[str, Any]:
    name, sign, text = pair.partition("=")
    if not sign:
        raise click.UsageError(f"a change must be NAME=VALUE, such as max_running=5, got {pair!r}")
    return name, parse_setting(name, text)


# -- showing ------------------------------------------------------------------------------------


def _show(output: Output, queue: Queue, settings: Settings) -> None:
    told = readable(settings)
    edited = told.pop("edited")
    output.show(
        {"queue": queue.name, "settings": told, "edited": edited},
        lambda console: _draw(console, settings),
    )


def readable(settings: Settings) -> dict[str, Any]:
    """The JSON of settings, with durations in seconds."""
    told: dict[str, Any] = document(settings)
    return told | {f"{name}_s": to_s(name, told.pop(name)) for name in _LENGTHS}


def _draw(console: Console, settings: Settings) -> None:
    rows = [(name, _text(getattr(settings, name))) for name in CHANGEABLE]
    marks = {True: "  (edited)", False: ""}
    console.print(facts((name, f"{text}{marks[name in settings.edited]}") for name, text in rows))


def _text(value: Any) -> str:
    match value:
        case None | ():
            return "none"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(map(str, value))
        case Backpressure() | Retain():
            pairs = [(one.name, getattr(value, one.name)) for one in fields(value) if one.init]
            return " ".join(f"{name}={one}" for name, one in pairs if one is not None)
        case _:
            return str(value)
