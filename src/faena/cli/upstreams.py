"""Commands on upstreams: how they are, panics, and forgetting."""

from __future__ import annotations

from typing import Any, Final

import click
from rich.console import Console

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import find_app
from faena.cli.argument import LASTING, ListedCommands, by, common, example, split, words
from faena.cli.budgets import budget_document, draw_budgets
from faena.cli.json_output import document, iso
from faena.cli.output import Output, counted, facts, instant, table
from faena.engine.calls.upstreams import UpstreamView

_HEADS: Final = ("upstream", "state", "failed", "next probe", "in trouble", "limits", "panic")
_SPARE: Final = ("limits", "next probe", "in trouble")


@click.group(
    cls=ListedCommands,
    epilog=example(
        "faena upstreams shop.tasks:app",
        "faena upstreams show afip",
        "faena upstreams panic afip --reason 'certificates expired' --for 1h",
        "faena upstreams resume afip",
        "faena upstreams forget afip",
    ),
)
def upstreams() -> None:
    """List or show upstreams, put one into panic or end that, forget one.

    MODULE:APP alone lists them; every command takes --json.
    """


@upstreams.command("list", epilog=example("faena upstreams list shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def list_(output: Output, words: tuple[str, ...]) -> None:
    """List all upstreams, also those that other programs declare."""
    target, _ = split(words)
    app = find_app(target)
    found = session.run(app, app.upstream_views)

    def draw(console: Console) -> None:
        rows = [_row(view) for view in found]
        console.print(table(_HEADS, rows, spare=_SPARE, text="panic", none="no upstream"))

    output.list(map(upstream_document, found), draw)


@upstreams.command(
    epilog=example("faena upstreams show afip", "faena upstreams show mp --tenant acme")
)
@words("[MODULE:APP] NAME")
@click.option("--tenant", help="Show what counts for this tenant's calls.")
@common
@click.pass_obj
def show(output: Output, words: tuple[str, ...], tenant: str | None) -> None:
    """Show one upstream: its breaker, limits and budgets, a panic, tenants in trouble."""
    app, name = _find(words)
    view = session.run(app, lambda: app.upstream_control.view(name, tenant=tenant))
    _print(output, view)


@upstreams.command(
    epilog=example("faena upstreams panic afip --reason 'certificates expired' --for 1h --by ana")
)
@words("[MODULE:APP] NAME")
@click.option("--reason", required=True, help="Why; shown wherever a job waits for it.")
@click.option("--for", "lasting", type=LASTING, help="End it after this time.  [default: never]")
@by
@common
@click.pass_obj
def panic(
    output: Output, words: tuple[str, ...], reason: str, lasting: str | None, by: str
) -> None:
    """Permit no call to an upstream, in any process, until it is resumed; its jobs wait.

    If it is in panic already, that gets the new reason, author and end.
    """
    app, name = _find(words)

    async def work() -> UpstreamView:
        await app.upstream_control.panic(name, reason=reason, by=by, lasting=lasting)
        return await app.upstream_control.view(name)

    _print(output, session.run(app, work))


@upstreams.command(epilog=example("faena upstreams resume afip --by ana"))
@words("[MODULE:APP] NAME")
@by
@common
@click.pass_obj
def resume(output: Output, words: tuple[str, ...], by: str) -> None:
    """End the panic of an upstream; its breaker still counts."""
    app, name = _find(words)

    async def work() -> bool:
        return await app.upstream_control.end_panic(name, by=by)

    has_ended = session.run(app, work)
    told = "is no longer in panic" if has_ended else "was not in panic"
    output.say({"upstream": name, "resumed": has_ended}, f"{name} {told}")


@upstreams.command(epilog=example("faena upstreams forget afip --by ana"))
@words("[MODULE:APP] NAME")
@by
@common
@click.pass_obj
def forget(output: Output, words: tuple[str, ...], by: str) -> None:
    """Remove an upstream that no program declares any more; its costs stay in reports.

    It is refused while MODULE:APP declares it. A running program that still declares it does so
    again with its next call.
    """
    app, name = _find(words)
    session.run(app, lambda: app.upstream_control.forget(name, by=by))
    output.say({"upstream": name, "forgotten": True}, f"{name} is forgotten")


def _find(words: tuple[str, ...]) -> tuple[Faena, str]:
    target, (name,) = split(words, "NAME")
    return find_app(target), name


def _print(output: Output, view: UpstreamView) -> None:
    output.show(upstream_document(view), lambda console: _draw(console, view))


def upstream_document(view: UpstreamView) -> dict[str, Any]:
    """An upstream for programs."""
    more: dict[str, Any] = {"error_rate": view.error_rate, "slow_rate": view.slow_rate}
    more |= {"is_probe_due": view.is_probe_due, "opens_at": iso(view.opens_at)}
    return {**document(view), **more, "budgets": [budget_document(one) for one in view.budgets]}


def _row(view: UpstreamView) -> tuple[object, ...]:
    panic = "" if view.panic is None else f"{view.panic.by}: {view.panic.reason}"
    uses = ", ".join(f"{use.used} of {use.limit}" for use in view.limits)
    probe, troubled = _probe(view) or "", counted(view.troubled, "tenant") if view.troubled else ""
    state, failed = _state(view), _failed(view)
    if view.per == "tenant":  # the one breaker of calls without a tenant says little
        is_unused = state == "closed" and not view.calls
        state, failed = ("per tenant", "") if is_unused else (f"{state}, per tenant", failed)
    return view.name, state, failed, probe, troubled, uses, panic


def _probe(view: UpstreamView) -> str | None:
    return "with the next call" if view.is_probe_due else instant(view.next_probe_at)


def _state(view: UpstreamView) -> str:
    if view.panic is not None:
        return "panic"
    return view.state if view.no_calls_until is None else "rate limited"


def _failed(view: UpstreamView) -> str:
    return f"{view.failed} of {view.calls}"


def _draw(console: Console, view: UpstreamView) -> None:
    slow = f", {view.slow} were slow" if view.slow else ""
    rows: list[tuple[str, object]] = [
        ("upstream", view.name),
        ("tenant", view.tenant),
        ("breaker", view.state if view.per == "upstream" else f"{view.state}, one per tenant"),
        ("since", instant(view.since)),
        ("failed", f"{_failed(view)} calls{slow}"),
        ("openings", view.openings or None),
        ("next probe", _probe(view)),
        ("no calls until", instant(view.no_calls_until)),
    ]
    if view.panic is not None:
        rows += [
            ("panic", view.panic.reason),
            ("called by", f"{view.panic.by}, {instant(view.panic.since)}"),
            ("ends", instant(view.panic.until) or "when an operator ends it"),
        ]
    for use in view.limits:
        whose = "tenant limit" if use.is_tenants else "limit"
        room = f", room at {instant(use.opens_at)}" if use.opens_at else ""
        rows.append((whose, f"{use.limit}: {use.used} used{room}"))
    if view.tenant is None:
        rows += [("tenant limit", f"{limit} for each tenant") for limit in view.tenant_limits]
    console.print(facts(rows))
    if view.budgets:
        console.print()
        draw_budgets(console, view.budgets)
    if view.tenants:
        troubled = [(one.tenant, one.state, instant(one.since)) for one in view.tenants]
        console.print()
        console.print(table(("tenant", "state", "since"), troubled, spare=("since",)))
        if view.troubled > len(view.tenants):
            console.print(f"and {view.troubled - len(view.tenants)} more")
