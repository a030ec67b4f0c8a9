"""`faena status`: queues, workers, upstreams, features and the broker on one screen."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any

import click
from rich.console import Console

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import find_app
from faena.cli.argument import LASTING, common, example, split, words
from faena.cli.json_output import document, iso, seconds
from faena.cli.output import Output
from faena.cli.status_reading import WINDOW_MIN, QueueStatus, Status, read_status
from faena.cli.status_screen import draw
from faena.cli.upstreams import upstream_document
from faena.engine.wire.patience import within
from faena.errors import StoreError
from faena.values.duration import to_s

_READ_S = 5.0
_CLEAR = "\x1b[H\x1b[J"


@click.command(
    epilog=example(
        "faena status shop.tasks:app",
        "faena status --watch",
        "faena status --json | jq '.problems[] | .about'",
    )
)
@words("[MODULE:APP]")
@click.option("--watch", is_flag=True, help="Show it again and again until Ctrl-C.")
@click.option(
    "--every", type=LASTING, default="2s", show_default=True, help="How often, with --watch."
)
@common
@click.pass_obj
def status(output: Output, words: tuple[str, ...], *, watch: bool, every: str) -> None:
    """Show how everything is, on one screen: what is worst comes first.

    Exit code 1 if the broker cannot be reached. Numbers per minute and errors are of the last five
    minutes. With --watch --json, each line is an object.
    """
    app = find_app(split(words)[0])
    try:
        session.run(app, lambda: _show(app, output, to_s("every", every) if watch else None))
    except KeyboardInterrupt:
        if not watch:
            raise


async def _show(app: Faena, output: Output, every_s: float | None) -> None:
    _print(output, await _read(app), clears=every_s is not None)
    while every_s is not None:
        await asyncio.sleep(every_s)
        try:
            found = await _read(app)
        except StoreError as error:  # shown, since it may come back
            sys.stderr.write(f"faena: {error}\n")
            continue
        _print(output, found, clears=True)


async def _read(app: Faena) -> Status:
    with within(_READ_S):
        return await read_status(app)


def _print(output: Output, found: Status, *, clears: bool) -> None:
    if clears and sys.stdout.isatty() and not output.is_json:
        sys.stdout.write(_CLEAR)
    output.show(_document(found), partial(_draw, found))


def _draw(found: Status, console: Console) -> None:
    draw(console, found)


def _document(found: Status) -> dict[str, Any]:
    seen = found.snapshot
    return {
        "at": iso(seen.at),
        "problems": [document(one) for one in found.problems],
        "queues": [_queue(one) for one in found.queues],
        "upstreams": [upstream_document(one) for one in seen.upstreams],
        "features": [document(one) for one in seen.features],
        "broker": [document(one) for one in seen.nodes],
        "missed_schedules": seen.missed_schedules,
        "alerts": None if found.alerts is None else [document(one) for one in found.alerts.firing],
    }


def _queue(one: QueueStatus) -> dict[str, Any]:
    now, lately = one.now, one.lately
    return {
        "queue": one.queue,
        "counts": now.counts,
        "oldest_s": seconds(now.oldest_us),
        "slots": now.slots,
        "utilization": now.utilization,
        "holds": [document(hold) for hold in now.holds],
        "workers": [document(worker) for worker in now.workers],
        "lately": {
            "minutes": WINDOW_MIN,
            "started": lately.started,
            "completed": lately.completed,
            "retried": lately.retried,
            "dead": lately.dead,
            "error_rate": lately.error_rate,
            "wait": document(lately.wait),
            "run": document(lately.run),
        },
    }
