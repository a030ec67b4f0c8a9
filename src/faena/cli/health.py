"""`faena health`: whether jobs can be enqueued, for probes and people."""

from __future__ import annotations

import asyncio
from typing import Any

import click
from rich.console import Console

from faena.app import Faena
from faena.cli.app_lookup import find_app
from faena.cli.argument import DURATION, common, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, facts, table
from faena.telemetry.health import Health


@click.command(
    epilog=example("faena health shop.tasks:app", "faena health --served --timeout 1s --json")
)
@words("[MODULE:APP]")
@click.option("--served", is_flag=True, help="Also require a worker and no hold for each queue.")
@click.option(
    "--timeout", type=DURATION, default="2s", show_default=True, help="How long the check may take."
)
@common
@click.pass_obj
def health(output: Output, words: tuple[str, ...], *, served: bool, timeout: str) -> None:
    """Check that jobs can be enqueued; exit code 1 if they cannot.

    It never takes longer than --timeout, and writes nothing.
    """
    app = find_app(split(words)[0])
    found = asyncio.run(_ask(app, timeout))
    told: dict[str, Any] = document(found)
    both = {"is_ok": found.is_ok, "is_served": found.is_served}
    output.show({**both, **told}, lambda console: _draw(console, found))
    if not (found.is_served if served else found.is_ok):
        raise click.ClickException(_trouble(found))


async def _ask(app: Faena, timeout: str) -> Health:
    try:
        return await app.health(timeout=timeout)
    finally:
        await app.close()


def _trouble(found: Health) -> str:
    """The reason for exit code 1."""
    if not found.is_reachable:
        return f"jobs cannot be enqueued: {found.problem}"
    missing = [name for name, queue in found.queues.items() if not queue.is_ready]
    if missing:
        return f"not declared by any program yet: {', '.join(missing)}"
    idle = [name for name, queue in found.queues.items() if queue.holds or not queue.workers]
    return f"without a worker, or held: {', '.join(idle)}"


def _draw(console: Console, found: Health) -> None:
    latency = None if found.latency_ms is None else f"{found.latency_ms:.1f} ms"
    console.print(
        facts(
            [
                ("healthy", "yes" if found.is_ok else "no"),
                ("served", "yes" if found.is_served else "no"),
                ("latency", latency),
                ("problem", found.problem),
            ]
        )
    )
    if found.queues:
        rows = [
            (name, "yes" if one.is_ready else "no", one.waiting, len(one.workers), _why(one.holds))
            for name, one in found.queues.items()
        ]
        console.print(table(("queue", "declared", "waiting", "workers", "holds"), rows))


def _why(holds: tuple[str, ...]) -> str:
    return ", ".join(holds)
