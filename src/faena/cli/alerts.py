"""Commands on alerts: what fires, what has changed, silences, trials of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click
from rich.console import Console

from faena.cli import session
from faena.cli.app_lookup import find_app
from faena.cli.argument import LASTING, ListedCommands, Whole, by, common, example, split, words
from faena.cli.output import Output, instant, table
from faena.telemetry.alerts.view import AlertChange, AlertsView, AlertView, SilenceView

_HEADS: Final = ("severity", "alert", "about", "since", "silenced", "value")
_SILENCES: Final = ("silence", "alert", "about", "until", "by", "reason")
_CHANGES: Final = ("at", "change", "severity", "alert", "about", "silenced", "value")
_SPARE: Final = ("silenced",)


@click.group(
    cls=ListedCommands,
    epilog=example(
        "faena alerts shop.tasks:app",
        "faena alerts history --limit 20",
        "faena alerts silence depth mail --for 2h --reason 'import under way'",
        "faena alerts unsilence 3f2a9c10",
        "faena alerts test ops",
    ),
)
def alerts() -> None:
    """List alerts that fire, show what has changed, silence alerts, try a channel.

    MODULE:APP alone lists them; every command takes --json.
    """


@alerts.command("list", epilog=example("faena alerts list shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def list_(output: Output, words: tuple[str, ...]) -> None:
    """List the alerts that fire or are pending, and the silences."""
    target, _ = split(words)
    app = find_app(target)
    view = session.run(app, lambda: app.alerts(history=0))
    shown = {
        "firing": view.firing,
        "pending": view.pending,
        "silences": view.silences,
        "undelivered": view.undelivered,
    }
    output.show(shown, lambda console: _draw(console, view))


@alerts.command(epilog=example("faena alerts history --limit 20"))
@words("[MODULE:APP]")
@click.option("--limit", type=Whole(1, 1000), default=50, show_default=True, help="How many.")
@common
@click.pass_obj
def history(output: Output, words: tuple[str, ...], limit: int) -> None:
    """List how alerts have changed, the latest first."""
    target, _ = split(words)
    app = find_app(target)
    found = session.run(app, lambda: app.alerts(history=limit)).history

    def draw(console: Console) -> None:
        rows = map(_change, found)
        console.print(table(_CHANGES, rows, spare=_SPARE, text="value", none="no change"))

    output.list(found, draw)


@alerts.command(
    epilog=example(
        "faena alerts silence depth mail --for 2h --reason 'import under way'",
        "faena alerts silence --for 30m --reason 'broker is replaced'",
    )
)
@words("[MODULE:APP] [RULE] [SUBJECT]")
@click.option("--for", "lasting", type=LASTING, required=True, help="How long.")
@click.option("--reason", required=True, help="Why; shown to others.")
@by
@common
@click.pass_obj
def silence(output: Output, words: tuple[str, ...], lasting: str, reason: str, by: str) -> None:
    """Send no notices of some alerts for some time: of a rule, of a rule about one queue, upstream
    or node, or of all. What still fires afterwards is told then.

    '*' as RULE means any.
    """
    target, rest = split(words, rest="RULE")
    if len(rest) > 2:
        raise click.UsageError("give at most RULE and SUBJECT")
    rule, subject = [*rest, None, None][:2]
    app = find_app(target)
    chosen = None if rule == "*" else rule
    view = session.run(
        app, lambda: app.silence(chosen, subject, lasting=lasting, reason=reason, by=by)
    )
    output.say(view, f"{_about(view)} silenced until {instant(view.until)}: {view.id}")


@alerts.command(epilog=example("faena alerts unsilence 3f2a9c10 --by ana"))
@words("[MODULE:APP] SILENCE")
@by
@common
@click.pass_obj
def unsilence(output: Output, words: tuple[str, ...], by: str) -> None:
    """End a silence; what still fires is told with the next evaluation."""
    target, (name,) = split(words, "SILENCE")
    app = find_app(target)
    session.run(app, lambda: app.unsilence(name, by=by))
    output.say({"silence": name, "ended": True}, f"silence {name} has ended")


@alerts.command(epilog=example("faena alerts test ops"))
@words("[MODULE:APP] CHANNEL")
@common
@click.pass_obj
def test(output: Output, words: tuple[str, ...]) -> None:
    """Send a trial notice through a channel, from here: secrets come from this environment."""
    target, (name,) = split(words, "CHANNEL")
    app = find_app(target)
    session.run(app, lambda: app.test_channel(name))
    output.say({"channel": name, "accepted": True}, f"channel {name} has accepted a trial notice")


def _draw(console: Console, view: AlertsView) -> None:
    rows = [_row(one, one.severity) for one in view.firing]
    rows += [_row(one, f"pending {one.severity}") for one in view.pending]
    console.print(table(_HEADS, rows, spare=_SPARE, text="value", none="no alert"))
    if view.silences:
        silences: Sequence[SilenceView] = view.silences
        console.print()
        console.print(table(_SILENCES, map(_silence, silences), text="reason"))
    if view.undelivered:
        console.print(f"{view.undelivered} notices are no jobs yet", markup=False)


def _row(view: AlertView, severity: str) -> tuple[object, ...]:
    silenced = "yes" if view.is_silenced else ""
    return severity, view.rule, view.subject, instant(view.since), silenced, view.text


def _silence(view: SilenceView) -> tuple[object, ...]:
    rule, subject = view.rule or "*", view.subject or "*"
    return view.id, rule, subject, instant(view.until), view.by, view.reason


def _change(view: AlertChange) -> tuple[object, ...]:
    silenced = "yes" if view.is_silenced else ""
    about = (view.severity, view.rule, view.subject)
    return instant(view.at), view.change, *about, silenced, view.text


def _about(view: SilenceView) -> str:
    rule = f"alert {view.rule}" if view.rule else "all alerts"
    return f"{rule} of {view.subject}" if view.subject else rule
