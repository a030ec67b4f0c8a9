"""`faena explain`: what a waiting job waits for."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from faena.cli import session
from faena.cli.argument import common, example, split, words
from faena.cli.output import Output, facts, instant, plain
from faena.cli.target import find_app, find_queue
from faena.errors import JobNotFound
from faena.explanation import Explanation


@click.command(epilog=example("faena explain shop.tasks:app mail 01JCXYZ"))
@words("[MODULE:APP] QUEUE ID")
@common
@click.pass_obj
def explain(output: Output, words: tuple[str, ...]) -> None:
    """Say what stands between a waiting job and its start."""
    target, (name, job_id) = split(words, "QUEUE", "ID")
    app = find_app(target)
    found = session.run(app, find_queue(app, name).handle(job_id).explain)
    if found.state is None:
        raise JobNotFound(f"no job {job_id} in queue {name}", op="explain")
    output.show(_document(found), lambda console: _draw(console, found))


def _document(found: Explanation) -> dict[str, Any]:
    document = {name: getattr(found, name) for name in found.__struct_fields__}
    return document | {"expected_at": found.expected_at, "words": str(found)}


def _draw(console: Console, found: Explanation) -> None:
    console.print(plain(str(found)))
    rows: list[tuple[str, object]] = [
        (
            gate.name,
            f"{plain(gate.detail)} until {instant(gate.until)}" if gate.until else gate.detail,
        )
        for gate in found.gates
    ]
    rows.append(("expected start", instant(found.expected_at) or "nobody can tell"))
    console.print(facts(rows))
