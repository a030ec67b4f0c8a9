"""`faena shares`: each tenant's share of a queue, by minute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from faena.cli import session
from faena.cli.app_lookup import app_and_queue
from faena.cli.argument import Whole, common, example, words
from faena.cli.json_output import iso, seconds
from faena.cli.output import Output, instant, table
from faena.tenancy.shares import Shares

NOBODY = "(no tenant)"

_HEADS = ("minute", "tenant", "given", "share", "mean wait", "kept back")


@click.command(epilog=example("faena shares shop.tasks:app mail", "faena shares mail --minutes 10"))
@words("[MODULE:APP] QUEUE")
@click.option(
    "--minutes",
    type=Whole(0, 59),
    default=1,
    show_default=True,
    help="How many full minutes, in addition to the current one.",
)
@common
@click.pass_obj
def shares(output: Output, words: tuple[str, ...], minutes: int) -> None:
    """Show each tenant's share of a queue by minute, and how long its jobs waited."""
    app, queue, _ = app_and_queue(words)
    found = session.run(app, lambda: queue.shares(minutes=minutes))
    output.list(map(_document, found), lambda console: _draw(console, found))


def _document(minute: Shares) -> dict[str, Any]:
    return {
        "at": iso(minute.at),
        "is_over": minute.is_over,
        "fairness": minute.fairness,
        "tenants": [_told(minute, tenant) for tenant in _tenants(minute)],
    }


def _tenants(minute: Shares) -> list[str]:
    """Those with the largest share first; some were only kept back."""
    known = dict.fromkeys([*minute.given, *minute.throttled_us])
    return sorted(known, key=lambda tenant: -minute.given.get(tenant, 0))


def _told(minute: Shares, tenant: str) -> dict[str, Any]:
    waits = minute.waits.get(tenant)
    return {
        "tenant": tenant or None,
        "given": minute.given.get(tenant, 0.0),
        "share": minute.of(tenant),
        "mean_wait_s": seconds(waits.mean_us) if waits else None,
        "kept_back_s": seconds(minute.throttled_us.get(tenant, 0)),
    }


def _draw(console: Console, found: Sequence[Shares]) -> None:
    rows = [row for minute in found for row in _rows(minute)]
    console.print(table(_HEADS, rows, spare=("kept back", "given"), none="no tenant was served"))
    for minute in found:
        fairness = "-" if minute.fairness is None else f"{minute.fairness:.3f}"
        running = "" if minute.is_over else ", still running"
        console.print(Text(f"fairness of {instant(minute.at)}{running}: {fairness}"))


def _rows(minute: Shares) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for tenant in _tenants(minute):
        told = _told(minute, tenant)
        wait, kept = told["mean_wait_s"], told["kept_back_s"]
        rows.append(
            (
                instant(minute.at),
                tenant or NOBODY,
                f"{told['given']:g}",
                f"{told['share']:.1%}",
                "-" if wait is None else f"{wait:.3f} s",
                f"{kept:.1f} s" if kept else "-",
            )
        )
    return rows
