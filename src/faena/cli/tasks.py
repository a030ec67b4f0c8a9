"""`faena tasks`: the tasks declared in code; needs no broker."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import click

from faena.cli.app_lookup import app_and_queues
from faena.cli.argument import common, example, words
from faena.cli.json_output import seconds
from faena.cli.output import Output, table
from faena.declaring.handler import Handler
from faena.values.duration import describe

_HEADS = ("queue", "task", "payload", "run", "timeout", "attempts", "priority", "version", "batch")


@click.command(epilog=example("faena tasks shop.tasks:app", "faena tasks mail --json"))
@words("[MODULE:APP] [QUEUE]...")
@common
@click.pass_obj
def tasks(output: Output, words: tuple[str, ...]) -> None:
    """Show the tasks that the app declares, with their options; needs no broker."""
    _, queues = app_and_queues(words)
    found = [handler for queue in queues for handler in queue.handlers.values()]
    rows = [tuple(_shown(one).values()) for one in found]
    drawn = partial(table, _HEADS, rows, spare=("version", "run", "batch", "priority", "payload"))
    output.list(map(_document, found), lambda console: console.print(drawn()))


def _document(handler: Handler) -> dict[str, Any]:
    batch = handler.batch
    return {
        "queue": handler.queue,
        "task": handler.name,
        "payload": _payload(handler),
        "run": handler.run,
        "timeout_s": seconds(handler.timeout_of(None, handler.priority)),
        "attempts": handler.retry.attempts,
        "priority": handler.priority,
        "version": handler.version,
        "batch": batch and {"size": batch.size, "wait_s": seconds(batch.wait_us)},
    }


def _shown(handler: Handler) -> dict[str, object]:
    batch, told = handler.batch, _document(handler)
    timeout_s = told.pop("timeout_s")
    size = f"{batch.size} within {describe(batch.wait_us)}" if batch else ""
    shown = told | {"payload": told["payload"] or "-", "batch": size}
    shown["timeout"] = describe(round(timeout_s * 1e6))
    return {name: shown[name] for name in _HEADS}


def _payload(handler: Handler) -> str | None:
    """The payload's type in the function's signature; None if it takes no payload."""
    if handler.payload_at < 0:
        return None
    parameters = [*inspect.signature(handler.function).parameters.values()]
    kind = parameters[handler.payload_at].annotation
    if kind is inspect.Parameter.empty:
        return "any"
    return kind if isinstance(kind, str) else inspect.formatannotation(kind)
