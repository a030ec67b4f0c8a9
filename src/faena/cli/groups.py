"""`faena groups`: jobs that are counted together, and their callbacks."""

from __future__ import annotations

from functools import partial

import click
from rich.console import Console

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import find_app, find_queue
from faena.cli.argument import Whole, common, example, split, words
from faena.cli.output import Output, facts, instant, table
from faena.engine.calls.flows import FlowCalls
from faena.errors import JobNotFound
from faena.flows.group import GroupView

_HEADS = ("group", "members", "completed", "dead", "cancelled", "since")


@click.command(
    epilog=example(
        "faena groups shop.tasks:app",
        "faena groups --ended",
        "faena groups mail/0Q7Xez7i3lQmA8w7fYOA",
    )
)
@words("[MODULE:APP] [QUEUE | QUEUE/ID]...")
@click.option("--ended", is_flag=True, help="Only groups that have ended.  [default: open ones]")
@click.option(
    "--limit", type=Whole(1, 1000), default=50, show_default=True, help="How many per queue."
)
@common
@click.pass_obj
def groups(output: Output, words: tuple[str, ...], *, ended: bool, limit: int) -> None:
    """List the groups of all queues, or of the given ones, newest first; or show one."""
    target, names = split(words, rest="QUEUE")
    app = find_app(target)
    for name in names:
        find_queue(app, name.partition("/")[0])
    if len(names) == 1 and "/" in names[0]:
        view = session.run(app, app.group(id=names[0]).view)
        output.show(view, lambda console: _draw(console, view))
        return
    if any("/" in name for name in names):
        raise click.UsageError(f"QUEUE/ID must be the only argument, got {' '.join(names)!r}")
    found = session.run(app, lambda: _look(app, names or list(app.queues), ended, limit))
    none = "no ended group" if ended else "no open group; --ended lists the others"
    rows = [_row(view) for view in found]
    drawn = partial(table, _HEADS, rows, spare=("cancelled", "dead", "since"), none=none)
    output.list(found, lambda console: console.print(drawn()))


async def _look(app: Faena, queues: list[str], is_ended: bool, limit: int) -> list[GroupView]:
    calls = FlowCalls((await app.runtime()).engine)
    found: list[GroupView] = []
    for queue in queues:
        for one in await calls.groups(queue, is_live=not is_ended, limit=limit):
            try:
                found.append(await app.group(id=f"{queue}/{one}").view())
            except JobNotFound:  # removed meanwhile
                continue
    return found


def _row(view: GroupView) -> tuple[object, ...]:
    total = "not sealed" if view.total is None else str(view.total)
    ends = view.completed, view.dead, view.cancelled
    return view.id, total, *ends, instant(view.created_at)


def _draw(console: Console, view: GroupView) -> None:
    rows: list[tuple[str, object]] = [
        ("group", view.id),
        ("members", "not sealed" if view.total is None else view.total),
        *((name, getattr(view, name)) for name in ("completed", "dead", "cancelled")),
        *((f"on {name}", state) for name, state in view.callbacks.items()),
        ("began", instant(view.created_at)),
        ("finished", instant(view.finished_at)),
    ]
    console.print(facts(rows))
