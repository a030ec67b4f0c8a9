"""`faena flow`: jobs that wait for each other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import click
import msgspec
from rich.console import Console

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import app_and_queues, find_app, find_queue
from faena.cli.argument import Commands, Whole, by, common, example, split, words
from faena.cli.json_output import iso
from faena.cli.output import Output, facts, instant, plain, table
from faena.engine.calls.flows import FlowCalls
from faena.errors import InvalidTransition
from faena.flows import Flow, FlowView, NodeView
from faena.outcomes import ErrorRecord

_LONGEST = 80


@click.group(
    cls=Commands,
    epilog=example("faena flow list shop.tasks:app", "faena flow show mail/0Q7Xez7i3lQmA8w7fYOA"),
)
def flow() -> None:
    """Flows: jobs that wait for each other. A flow is named QUEUE/ID.

    Every command takes --json.
    """


@flow.command("list", epilog=example("faena flow list shop.tasks:app", "faena flow list --ended"))
@words("[MODULE:APP] [QUEUE]...")
@click.option("--ended", is_flag=True, help="Only flows that have ended.  [default: running ones]")
@click.option(
    "--limit", type=Whole(1, 1000), default=50, show_default=True, help="How many per queue."
)
@common
@click.pass_obj
def list_(output: Output, words: tuple[str, ...], *, ended: bool, limit: int) -> None:
    """List the flows of all queues, or of the given ones, newest first."""
    app, queues = app_and_queues(words)

    async def look() -> list[FlowView]:
        calls = FlowCalls((await app.runtime()).engine)
        return [
            await app.running_flow(f"{queue.name}/{one}").view(has_nodes=False)
            for queue in queues
            for one in await calls.flows(queue.name, is_live=not ended, limit=limit)
        ]

    found = session.run(app, look)
    rows = [
        (view.id, view.name, view.state, f"{view.total - view.left}/{view.total}", _since(view))
        for view in found
    ]
    heads = ("flow", "name", "state", "ended", "since")
    none = "no recently ended flow" if ended else "no running flow; --ended lists the others"
    output.list(
        map(_summary, found),
        lambda one: one.print(table(heads, rows, spare=("name", "since"), none=none)),
    )


@flow.command(epilog=example("faena flow show shop.tasks:app mail/0Q7Xez7i3lQmA8w7fYOA"))
@words("[MODULE:APP] FLOW")
@click.option("--results", is_flag=True, help="Show the results of completed nodes as well.")
@common
@click.pass_obj
def show(output: Output, words: tuple[str, ...], *, results: bool) -> None:
    """Show a flow: its progress, and every node with its job."""
    found, app = _find(words)
    view = session.run(app, found.view)

    def draw(console: Console) -> None:
        console.print(
            facts(
                [
                    ("flow", view.id),
                    ("name", view.name),
                    ("state", view.state),
                    ("ended", f"{view.total - view.left} of {view.total}"),
                    ("began", instant(view.created_at)),
                    ("finished", instant(view.finished_at)),
                ]
            )
        )
        rows = [
            (node.name, node.state, node.queue, node.task, node.job, _after(node.after), said)
            for node in view.nodes
            for said in [_short(_said(node, is_open=results))]
        ]
        heads = ("node", "state", "queue", "task", "job", "after", "outcome")
        console.print(table(heads, rows, spare=("queue", "after", "task"), text="outcome"))

    nodes = [{**_plain(node), "outcome": _outcome(node, is_open=results)} for node in view.nodes]
    numbers = {"progress": view.progress, "counts": view.counts}
    output.show({**_summary(view), **numbers, "nodes": nodes}, draw)


@flow.command(epilog=example("faena flow cancel shop.tasks:app mail/0Q7Xez7i3lQmA8w7fYOA"))
@words("[MODULE:APP] FLOW")
@by
@common
@click.pass_obj
def cancel(output: Output, words: tuple[str, ...], by: str) -> None:
    """Cancel a flow: its waiting and running jobs, and nodes not yet enqueued."""
    found, app = _find(words)
    _change(app, lambda: found.cancel(by=by))
    output.say({"flow": found.id, "state": "cancelled"}, f"{found.id} is cancelled")


@flow.command(epilog=example("faena flow rerun shop.tasks:app mail/0Q7Xez7i3lQmA8w7fYOA"))
@words("[MODULE:APP] FLOW")
@by
@common
@click.pass_obj
def rerun(output: Output, words: tuple[str, ...], by: str) -> None:
    """Run a failed or cancelled flow again, with new jobs for the nodes that did not complete."""
    found, app = _find(words)
    _change(app, lambda: found.rerun(by=by))
    output.say({"flow": found.id, "state": "running"}, f"{found.id} runs again")


def _change(app: Faena, work: Callable[[], Awaitable[None]]) -> None:
    """Change a flow; errors get the operation `flow`, for advice about flows instead of jobs."""
    try:
        session.run(app, work)
    except InvalidTransition as error:
        raise InvalidTransition(str(error), op="flow") from error


def _find(given: tuple[str, ...]) -> tuple[Flow, Faena]:
    target, (name,) = split(given, "FLOW")
    app = find_app(target)
    found = app.running_flow(name)
    find_queue(app, name.partition("/")[0])
    return found, app


def _since(view: FlowView) -> str:
    return instant(view.finished_at or view.created_at) or ""


def _after(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f", … ({len(names)})" if len(names) > 5 else "")


def _short(text: str) -> str:
    line = plain(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _outcome(node: NodeView, *, is_open: bool) -> msgspec.Raw | None:
    """A node's error, or its result if the operator asked for results: they may be secret."""
    if node.outcome is None or (node.state == "completed" and not is_open):
        return None
    return msgspec.Raw(node.outcome)


def _said(node: NodeView, *, is_open: bool) -> str:
    outcome = bytes(_outcome(node, is_open=is_open) or b"")
    if not outcome or node.state == "completed":
        return outcome.decode(errors="backslashreplace")
    error = msgspec.json.decode(outcome, type=ErrorRecord)
    return f"{error.name}: {error.message}".split("\n")[0]


def _plain(node: NodeView) -> dict[str, Any]:
    names = ("name", "state", "queue", "task", "job", "after")
    return {name: getattr(node, name) for name in names}


def _summary(view: FlowView) -> dict[str, Any]:
    names = ("id", "name", "state", "total", "left", "created_at", "finished_at")
    summary = {name: getattr(view, name) for name in names}
    return summary | {name: iso(summary[name]) for name in ("created_at", "finished_at")}
