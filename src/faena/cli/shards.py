"""Commands on the shards of queues, including those of dedicated tenants."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from faena.cli import session
from faena.cli.app_lookup import app_and_queues, find_app, find_queue
from faena.cli.argument import DURATION, by, common, example, split, words
from faena.cli.output import Output, counted, table
from faena.queue import Queue
from faena.sharding.view import ShardsView
from faena.values.duration import to_s
from faena.values.numbers import read_whole

_STEP_S: Final = 1.0


@click.command(epilog=example("faena shards shop.tasks:app", "faena shards mail --json"))
@words("[MODULE:APP] [QUEUE]...")
@common
@click.pass_obj
def shards(output: Output, words: tuple[str, ...]) -> None:
    """Show the shards of queues, tenants with a shard of their own, and what is moving."""
    app, chosen = app_and_queues(words)

    async def look() -> list[ShardsView]:
        return [await queue.shards() for queue in chosen]

    found = session.run(app, look)

    def view(console: Console) -> None:
        console.print(_table(found))
        for queue, one in zip(chosen, found, strict=True):
            if one.is_edited and one.shards < queue.options.shards:
                console.print(Text(_edited(queue, one)))

    output.list(found, view)


def _edited(queue: Queue, view: ShardsView) -> str:
    """Why a queue does not have the number of shards declared in code."""
    return (
        f"{queue.name} has {counted(view.shards, 'shard')}, set with `faena reshard`; code "
        f"declares {queue.options.shards}: `faena reset {queue.name} shards` uses that"
    )


def _table(found: list[ShardsView]) -> object:
    rows = [
        (view.queue, name, live, view.change or "")
        for view in found
        for name, live in view.jobs.items()
    ]
    return table(("queue", "shard", "live jobs", "moving"), rows)


@click.command(epilog=example("faena reshard shop.tasks:app mail 4 --by ana"))
@words("[MODULE:APP] QUEUE SHARDS")
@by
@click.option(
    "--wait",
    type=DURATION,
    default="10m",
    show_default=True,
    help="How long to wait for jobs to move; workers continue after that.",
)
@common
@click.pass_obj
def reshard(output: Output, words: tuple[str, ...], by: str, wait: str) -> None:
    """Change the number of shards of a queue while it runs; shards to be removed must be empty.

    The number stays, whatever code declares, until `faena reset QUEUE shards`.
    """
    target, (name, number) = split(words, "QUEUE", "SHARDS")
    if not isinstance(read_whole(number), int):
        raise click.UsageError(f"SHARDS must be a whole number, got {number!r}")
    app = find_app(target)
    queue = find_queue(app, name)
    before, view = session.run(app, lambda: _reshard(queue, int(number), by, to_s("wait", wait)))
    output.say(view, _told(queue, before, view))


def _told(queue: Queue, before: ShardsView, view: ShardsView) -> str:
    shards = counted(view.shards, "shard")
    if not before.is_moving and before.shards == view.shards:
        return f"{view.queue} already had {shards}: nothing was moved"
    state = "is still moving; workers continue" if view.is_moving else "has moved"
    is_fewer = view.is_edited and view.shards < queue.options.shards
    return f"{view.queue} has {shards} and {state}" + (
        f"; code declares {queue.options.shards}: `faena reset {view.queue} shards` uses that"
        if is_fewer
        else ""
    )


async def _reshard(
    queue: Queue, shards: int, by: str, wait_s: float
) -> tuple[ShardsView, ShardsView]:
    """The views before and after; while jobs move, standard error shows how many each shard has."""
    before = await queue.shards()
    moving = asyncio.create_task(queue.reshard(shards, by=by, wait=timedelta(seconds=wait_s)))
    try:
        while not (await asyncio.wait({moving}, timeout=_STEP_S))[0]:
            view = await queue.shards()
            counts = ", ".join(f"{shard} {live}" for shard, live in view.jobs.items())
            click.echo(f"{view.change or 'moving'}: {counts}", err=True)
        return before, moving.result()
    finally:
        moving.cancel()
