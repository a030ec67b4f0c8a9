"""`faena explain`: why a job is where it is, what comes next and when it should start."""

from __future__ import annotations

from typing import Any, Final

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
from faena.inspection.explanation import Explanation
from faena.inspection.reason import Reason
from faena.inspection.start import ExpectedStart
from faena.queue import Queue
from faena.states import State

_INSTANTS: Final = frozenset({"since", "lease_until", "made_at"})
_IN_WORDS: Final = frozenset({"turn", "retry", "slots"})
"""Reasons whose details mean little without words."""


@click.command(epilog=example("faena explain shop.tasks:app mail 01JCXYZ"))
@words("[MODULE:APP] QUEUE ID")
@common
@click.pass_obj
def explain(output: Output, words: tuple[str, ...]) -> None:
    """Explain why a job waits, what must happen next and when it should start, or how it ended."""
    app, queue, (job_id,) = app_and_queue(words, "ID")
    found, letter = session.run(app, lambda: _look(app, queue, job_id))
    if found.source == "nowhere":
        raise JobNotFound(f"no job {job_id} in queue {queue.name}", op="explain")
    output.show(_document(found, letter), lambda console: _draw(console, found, letter))


async def _look(app: Faena, queue: Queue, job_id: str) -> tuple[Explanation, DeadLetter | None]:
    found = await queue.handle(job_id).explain()
    is_dead = found.state is State.DEAD
    return found, await app.dead_letters.get(queue.name, job_id) if is_dead else None


def _document(found: Explanation, letter: DeadLetter | None) -> dict[str, Any]:
    desk = letter and {
        "status": letter.status,
        "retry_at": iso(letter.retry_at),
        "retried_as": letter.retried_as,
        "resolution": letter.resolution,
    }
    return _told(found) | {"desk": desk}


def _told(found: Explanation) -> dict[str, Any]:
    told: dict[str, Any] = document(found)
    start = found.expected_start
    told["upstreams"] = [upstream_document(view) for view in found.upstreams]
    told["waits_for"] = [_told(one) for one in found.waits_for]
    told["beside"] = [_reason(one) for one in found.beside]
    told["reasons"] = [_reason(one) for one in found.reasons]
    told["sure_at"], told["likely_at"] = iso(found.sure_at), iso(found.likely_at)
    told |= {"next": found.next, "words": str(found), "expected_start": start and _start(start)}
    return told | {"expected_at": iso(found.expected_at), "is_earliest": found.is_earliest}


def _reason(reason: Reason) -> dict[str, Any]:
    details = {
        name: iso(value) if name in _INSTANTS and isinstance(value, int) else value
        for name, value in reason.details.items()
    }
    told: dict[str, Any] = document(reason)
    return {**told, "details": details, "next": reason.next}


def _start(start: ExpectedStart) -> dict[str, Any]:
    told: dict[str, Any] = document(start)
    between = start.between and [iso(one) for one in start.between]
    return {**told, "earliest": iso(start.earliest), "between": between}


def _draw(console: Console, found: Explanation, letter: DeadLetter | None) -> None:
    console.print(Text(plain(str(found))))
    if found.is_waiting:
        rows = _waiting(found)
    else:
        rows = [(one.code, _detail(one)) for one in found.reasons[1:]]
        rows += _desk(letter) if letter else _next(found)
    console.print(facts(rows))
    _draw_awaited(console, found)


def _waiting(found: Explanation) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [(one.code, _detail(one)) for one in found.reasons]
    start = found.expected_start
    rows += [*_next(found), ("expected start", start.words if start else None)]
    return rows


def _next(found: Explanation) -> list[tuple[str, object]]:
    return [("next", one) for one in found.next]


def _draw_awaited(console: Console, found: Explanation) -> None:
    """The jobs that it waits for, a line each."""
    for one in found.waits_for:
        console.print(Text(plain(str(one))))
        _draw_awaited(console, one)


def _detail(reason: Reason) -> str:
    """A turn in words: the number that orders lanes means nothing to a reader."""
    known = reason.details.get("detail")
    detail = reason.words if reason.code in _IN_WORDS or known is None else plain(str(known))
    until = f"until {instant(reason.until)}" if reason.until else ""
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
