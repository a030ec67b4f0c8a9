"""Commands on features and levels: how they are, and what operators say of them."""

from __future__ import annotations

from typing import Final

import click
from rich.console import Console

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import find_app
from faena.cli.argument import LASTING, ListedCommands, by, common, example, split, words
from faena.cli.output import Output, facts, instant, table
from faena.resilience.feature import TROUBLES
from faena.resilience.feature_views import FeaturesView, FeatureView, LevelView

_HEADS: Final = ("feature", "state", "critical", "fallback", "since", "source", "reason", "message")
_SPARE: Final = ("fallback", "critical", "since", "reason")
_LEVELS: Final = ("level", "state", "until", "by", "features")


@click.group(
    cls=ListedCommands,
    epilog=example(
        "faena features shop.tasks:app",
        "faena features set ai.voice offline --message 'OpenAI is down' --for 1h",
        "faena features clear ai.voice",
        "faena features level black-friday on --for 1d",
        "faena features forget ai.voice",
    ),
)
def features() -> None:
    """List or show features, set their states by hand, switch levels, forget one of either.

    MODULE:APP alone lists them; every command takes --json.
    """


@features.command("list", epilog=example("faena features list shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def list_(output: Output, words: tuple[str, ...]) -> None:
    """List all features, also those that other programs declare, and the overall state."""
    app, _ = _find(words)
    view = session.run(app, app.features)

    def draw(console: Console) -> None:
        rows = [_row(one) for one in view.features.values()]
        console.print(table(_HEADS, rows, spare=_SPARE, text="message", none="no feature"))
        on = [one.name for one in view.levels.values() if one.is_on]
        levels = f"; on: {', '.join(on)}" if on else ""
        console.print(f"overall: {view.overall}{levels}", markup=False)

    output.show(view, draw)


@features.command(epilog=example("faena features show invoicing.afip"))
@words("[MODULE:APP] NAME")
@common
@click.pass_obj
def show(output: Output, words: tuple[str, ...]) -> None:
    """Show one feature, and everything that says it is not healthy."""
    app, (name,) = _find(words, "NAME")
    _print(output, session.run(app, app.features.control(name).view))


@features.command(
    "set",
    epilog=example("faena features set ai.voice offline --message 'OpenAI is down' --for 1h"),
)
@words(f"[MODULE:APP] NAME {'|'.join(TROUBLES)}")
@click.option("--message", help="What to tell users.")
@click.option("--for", "lasting", type=LASTING, help="End it after this time.  [default: never]")
@by
@common
@click.pass_obj
def set_(
    output: Output, words: tuple[str, ...], message: str | None, lasting: str | None, by: str
) -> None:
    """Say by hand that a feature is degraded or offline; the worst source counts."""
    app, (name, state) = _find(words, "NAME", "STATE")
    feature = app.features.control(name)

    async def work() -> FeatureView:
        await feature.set(state, message=message, lasting=lasting, by=by)  # pyright: ignore[reportArgumentType] - checked there
        return await feature.view()

    _print(output, session.run(app, work))


@features.command(epilog=example("faena features clear ai.voice --by ana"))
@words("[MODULE:APP] NAME")
@by
@common
@click.pass_obj
def clear(output: Output, words: tuple[str, ...], by: str) -> None:
    """End what was set by hand; what other sources say stays."""
    app, (name,) = _find(words, "NAME")
    feature = app.features.control(name)

    async def work() -> tuple[bool, FeatureView]:
        return await feature.clear(by=by), await feature.view()

    has_ended, view = session.run(app, work)
    told = "what was set has ended" if has_ended else "nothing was set by hand"
    source = f" ({view.source})" if view.source else ""
    document = {"feature": name, "cleared": has_ended, "state": view.state, "source": view.source}
    output.say(document, f"{name}: {told}; it is {view.state}{source}")


@features.command(epilog=example("faena features levels shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def levels(output: Output, words: tuple[str, ...]) -> None:
    """List all levels: saved sets of states."""
    app, _ = _find(words)
    view = session.run(app, app.features)
    found = list(view.levels.values())

    def draw(console: Console) -> None:
        console.print(table(_LEVELS, map(_level, found), text="features", none="no level"))

    output.list(found, draw)


@features.command(
    epilog=example(
        "faena features level black-friday on --for 1d --by ana",
        "faena features level black-friday off",
    )
)
@words("[MODULE:APP] NAME on|off")
@click.option("--message", help="What to tell users.")
@click.option("--for", "lasting", type=LASTING, help="End it after this time.  [default: never]")
@by
@common
@click.pass_obj
def level(
    output: Output, words: tuple[str, ...], message: str | None, lasting: str | None, by: str
) -> None:
    """Switch a level on or off."""
    app, (name, to) = _find(words, "NAME", "on|off")
    if to not in {"on", "off"}:
        raise click.UsageError(f"a level must be switched 'on' or 'off', got {to!r}")
    if to == "off" and (message is not None or lasting is not None):
        raise click.UsageError("--message and --for must be given with 'on' only")
    chosen = app.features.level_control(name)

    async def work() -> tuple[bool, FeaturesView]:
        if to == "off":
            return await chosen.off(by=by), await app.features()
        await chosen.on(message=message, lasting=lasting, by=by)
        return True, await app.features()

    has_changed, view = session.run(app, work)
    told = f"is {to}" if has_changed else f"was {to} already"
    until = instant(view.levels[name].until)
    ends = f" until {until}" if until else ""
    output.say(view.levels[name], f"{name} {told}{ends}; overall: {view.overall}")


@features.command(
    epilog=example("faena features forget ai.voice", "faena features forget sale --level --by ana")
)
@words("[MODULE:APP] NAME")
@click.option("--level", "is_level", is_flag=True, help="NAME is a level.")
@by
@common
@click.pass_obj
def forget(output: Output, words: tuple[str, ...], is_level: bool, by: str) -> None:
    """Remove a feature, or with --level a level, that no program declares any more.

    It is refused while MODULE:APP declares it. A running program that still declares it does so
    again when it reads features next.
    """
    app, (name,) = _find(words, "NAME")
    kind = "level" if is_level else "feature"
    remove = app.features.forget_level if is_level else app.features.forget
    session.run(app, lambda: remove(name, by=by))
    output.say({kind: name, "forgotten": True}, f"{kind} {name} is forgotten")


def _find(words: tuple[str, ...], *names: str) -> tuple[Faena, list[str]]:
    target, rest = split(words, *names)
    return find_app(target), rest


def _print(output: Output, view: FeatureView) -> None:
    output.show(view, lambda console: _draw(console, view))


def _row(view: FeatureView) -> tuple[object, ...]:
    since = instant(view.since) or ""
    critical = "yes" if view.is_critical else ""
    what = (view.source or "", view.reason or "", view.message or "")
    return view.name, view.state, critical, view.fallback, since, *what


def _level(view: LevelView) -> tuple[object, ...]:
    states = ", ".join(f"{name} {state}" for name, state in view.states.items())
    until = instant(view.until) or ""
    return view.name, "on" if view.is_on else "off", until, view.by or "", states


def _draw(console: Console, view: FeatureView) -> None:
    rows: list[tuple[str, object]] = [
        ("feature", view.name),
        ("state", view.state),
        ("since", instant(view.since)),
        ("message", view.message),
        ("reason", view.reason),
        ("critical", "yes" if view.is_critical else "no"),
        ("fallback", view.fallback),
    ]
    for one in view.sources:
        by = f" by {one.by}" if one.by else ""
        until = f", until {instant(one.until)}" if one.until else ""
        said = f": {one.reason or one.message}" if one.reason or one.message else ""
        rows.append((one.source, f"{one.state} since {instant(one.since)}{by}{until}{said}"))
    console.print(facts(rows))
