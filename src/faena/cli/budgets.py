"""Commands on budgets and costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click
from rich.console import Console

from faena.cli import session
from faena.cli.app_lookup import find_app
from faena.cli.argument import ListedCommands, Whole, by, common, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, facts, instant, table
from faena.engine.calls.budget_view import BudgetView
from faena.resilience.costs import CostReport
from faena.values.money import Money, amount_text

_HEADS: Final = ("budget", "per", "amount", "spent", "percent", "reserved", "left", "kind", "ends")
_TOP: Final = "How many tenants to name for each."
_SPARE: Final = ("ends", "kind", "reserved", "left")


@click.group(
    cls=ListedCommands,
    epilog=example(
        "faena budgets shop.tasks:app",
        "faena budgets report --month 2026-11",
        "faena budgets report --day 2026-11-16 --top 3 --json",
        "faena budgets forget",
    ),
)
def budgets() -> None:
    """List budgets, report what calls to upstreams have cost, or forget the total budgets.

    MODULE:APP alone lists them; every command takes --json.
    """


@budgets.command("list", epilog=example("faena budgets list --tenant acme"))
@words("[MODULE:APP]")
@click.option("--tenant", help="Whose, of budgets that each tenant has.  [default: spent most]")
@common
@click.pass_obj
def list_(output: Output, words: tuple[str, ...], tenant: str | None) -> None:
    """List all budgets, and how much of each is used now."""
    target, _ = split(words)
    app = find_app(target)
    found = session.run(app, lambda: app.budget_views(tenant=tenant))
    output.list(map(budget_document, found), lambda console: draw_budgets(console, found))


@budgets.command(
    epilog=example("faena budgets report", "faena budgets report --day 2026-11-16 --top 3")
)
@words("[MODULE:APP]")
@click.option("--month", help="A month such as 2026-11.  [default: this one]")
@click.option("--day", help="A day such as 2026-11-16, of UTC.")
@click.option("--top", type=Whole(0, 100), default=10, show_default=True, help=_TOP)
@common
@click.pass_obj
def report(
    output: Output, words: tuple[str, ...], month: str | None, day: str | None, top: int
) -> None:
    """Report costs by service, task, tenant and day, with a forecast to the end of the month."""
    target, _ = split(words)
    app = find_app(target)
    found = session.run(app, lambda: app.cost_report(month=month, day=day, top=top))
    shown = {**document(found), "budgets": [budget_document(one) for one in found.budgets]}
    output.show(shown, lambda console: _draw(console, found))


@budgets.command(epilog=example("faena budgets forget --by ana"))
@words("[MODULE:APP]")
@by
@common
@click.pass_obj
def forget(output: Output, words: tuple[str, ...], by: str) -> None:
    """Remove the budgets of all upstreams together, which no program declares any more.

    It is refused while MODULE:APP declares some. Those of one upstream go with `upstreams forget`.
    """
    target, _ = split(words)
    app = find_app(target)
    is_done = session.run(app, lambda: app.upstream_control.forget_totals(by=by))
    told = "the total budgets are forgotten" if is_done else "there are no total budgets"
    output.say({"forgotten": is_done}, told)


def budget_document(view: BudgetView) -> dict[str, object]:
    """A budget for programs."""
    return {**document(view), "left": document(view.left), "percent": view.percent}


def draw_budgets(console: Console, found: Sequence[BudgetView]) -> None:
    """A table of budgets and their use."""
    rows = [_row(view) for view in found]
    console.print(table(_HEADS, rows, spare=_SPARE, none="no budget"))


def _row(view: BudgetView) -> tuple[object, ...]:
    whose = f" @{view.tenant or 'each tenant'}" if view.is_each_tenants else ""
    name = view.upstream or f"total {view.amount.currency}"
    kind = "hard" if view.is_hard else "tells"
    kind += f", soft from {view.soft:.0%}" if view.soft else ""
    kind += ", reserved" if view.is_full and not view.is_used_up else ""
    amount, spent, *rest = map(_amount, (view.amount, view.spent, view.reserved, view.left))
    share = f"{view.percent:g} %{', used up' if view.is_used_up else ''}"  # never left out
    sums = amount, spent, share, *rest
    return f"{name}{whose}", view.per, *sums, kind, instant(view.ends_at)


def _draw(console: Console, found: CostReport) -> None:
    foreseen = None if found.forecast is None else _text(found.forecast)
    is_day = found.per == "day"
    rows: list[tuple[str, object]] = [
        (found.per, found.period),
        ("spent", _text(found.spent)),
        ("month", _text(found.month_spent) if is_day else None),
        ("forecast", foreseen),
    ]
    console.print(facts(rows))
    services = [
        (one.upstream, *map(_amount, (one.spent, one.month_spent, one.forecast)))
        for one in found.services
    ]
    details = [
        (one.upstream, what, name, _amount(spent))
        for one in found.services
        for what, name, spent in [
            *(("task", each.task, each.spent) for each in one.tasks),
            *(("tenant", each.tenant, each.spent) for each in one.top_tenants),
        ]
    ]
    days = [(one.day, _text(one.spent)) for one in found.days]
    for heads, lines in (
        (("service", "spent", "month", "forecast"), services),
        (("service", "of", "name", "spent"), details),
        (("day", "spent"), days),
    ):
        if lines:
            console.print()
            console.print(table(heads, lines))
    if found.budgets:
        console.print()
        draw_budgets(console, found.budgets)


def _text(amounts: Sequence[Money]) -> str:
    return " · ".join(map(_amount, amounts)) or "nothing"


def _amount(money: Money | None) -> str:
    return "" if money is None else amount_text(money, thousands=",")
