"""`faena explain`: why a job waits, or how it ended."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import app_and_queue
from faena.cli.argument import common, example, words
from faena.cli.json_output import document, iso
from faena.cli.output import Output, facts, instant, plain
from faena.cli.upstreams import upstream_document
from faena.deadletter.views import DeadLetter
from faena.errors import JobNotFound
from faena.inspection.explanation import Explanation, Gate
from faena.queue import Queue
from faena.states import State


@click.command(epilog=example("faena explain shop.tasks:app mail 01JCXYZ"))
@words("[MODULE:APP] QUEUE ID")
@common
@click.pass_obj
def explain(output: Output, words: tuple[str, ...]) -> None:
    """Explain why a waiting job has not started, or how another one ended."""
    app, queue, (job_id,) = app_and_queue(words, "ID")
    found, letter = session.run(app, lambda: _look(app, queue, job_id))
    if found.state is None:
        raise JobNotFound(f"no job {job_id} in queue {queue.name}", op="explain")
    output.show(_document(found, letter), lambda console: _draw(console, found, letter))


async def _look(app: Faena, queue: Queue, job_id: str) -> tuple[Explanation, DeadLetter | None]:
    found = await queue.handle(job_id).explain()
    is_dead = found.state is State.DEAD
    return found, await app.dead_letters.get(queue.name, job_id) if is_dead else None


def _document(found: Explanation, letter: DeadLetter | None) -> dict[str, Any]:
    told: dict[str, Any] = document(found)
    desk = letter and {
        "status": letter.status,
        "retry_at": iso(letter.retry_at),
        "retried_as": letter.retried_as,
        "resolution": letter.resolution,
    }
    told["upstreams"] = [upstream_document(view) for view in found.upstreams]
    expected = {"expected_at": iso(found.expected_at), "is_earliest": found.is_earliest}
    return told | expected | {"words": str(found), "desk": desk}


def _draw(console: Console, found: Explanation, letter: DeadLetter | None) -> None:
    console.print(Text(plain(str(found))))
    if not found.is_waiting:
        console.print(facts(_desk(letter) if letter else ()))
        return
    rows: list[tuple[str, object]] = [(gate.name, _detail(gate, found.at)) for gate in found.gates]
    expected, bound = instant(found.expected_at), "not before " if found.is_earliest else ""
    rows.append(("expected start", f"{bound}{expected}" if expected else "unknown"))
    console.print(facts(rows))


def _detail(gate: Gate, now: int) -> str:
    """A turn in words: the number that orders lanes means nothing to a reader."""
    detail = gate.words(now) if gate.name == "turn" else plain(gate.detail)
    until = f"until {instant(gate.until)}" if gate.until else ""
    return ", ".join(filter(None, (detail, until)))


def retried_at(letter: DeadLetter) -> str | None:
    """When workers will retry a dead job automatically, if they will."""
    if letter.retry_at is None:
        return None
    return f"will be retried automatically at {instant(letter.retry_at)}"


def _desk(letter: DeadLetter) -> list[tuple[str, object]]:
    done = letter.resolution
    return [
        ("at the desk", letter.status.value),
        ("next", retried_at(letter)),
        ("retried as", letter.retried_as),
        ("decided", done and f"{done.action} by {done.by}, {instant(done.at)}: {done.reason}"),
    ]
