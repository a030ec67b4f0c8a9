"""Commands that show jobs. Payloads are shown only on request: they may be confidential."""

from __future__ import annotations

from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import app_and_queue
from faena.cli.argument import Whole, common, example, words
from faena.cli.json_output import document
from faena.cli.output import Output, attempts, facts, failures, instant, plain, table, titled
from faena.cli.pg_session import CONNECT_S
from faena.errors import JobNotFound, StoreUnavailable
from faena.inspection.inspector import Page
from faena.inspection.instant import times
from faena.inspection.past import Source
from faena.job import JobView
from faena.states import State

_CONFIDENTIAL = ("payload", "result")


@click.command(
    epilog=example("faena job shop.tasks:app mail 01JCXYZ", "faena job mail 01JCXYZ --payload")
)
@words("[MODULE:APP] QUEUE ID")
@click.option("--payload", is_flag=True, help="Show payload and result as well.")
@common
@click.pass_obj
def job(output: Output, words: tuple[str, ...], *, payload: bool) -> None:
    """Show one job: state, times, errors, progress, log lines."""
    app, queue, (job_id,) = app_and_queue(words, "ID")
    view = session.run(app, queue.handle(job_id).view)
    if view is None:
        raise JobNotFound(f"no job {job_id} in queue {queue.name}", op="job")
    told = _document(view, is_open=payload)
    output.show(told, lambda console: _draw(console, view, is_open=payload))


def _document(view: JobView, *, is_open: bool) -> dict[str, Any]:
    told: dict[str, Any] = document(view)
    told["result"] = msgspec.Raw(view.result) if view.result else None
    for name in _CONFIDENTIAL if not is_open else ():
        del told[name]
    return told


def _draw(console: Console, view: JobView, *, is_open: bool) -> None:
    console.print(facts(_facts(view)))
    if is_open:
        console.print(facts([("payload", _text(view.payload)), ("result", _text(view.result))]))
    failures(console, view.errors)
    for line in view.log:
        console.print(Text(plain(f"log  {line}")))


def _often(number: int, reason: str | None) -> str | None:
    if not number:
        return None
    return f"{times(number)}: {reason}" if reason else times(number)


def _state(view: JobView) -> str:
    if view.is_stopping:
        return f"{view.state.value}, asked to stop"
    is_told_more = view.ended not in {None, view.state.value}
    return f"{view.state.value} ({view.ended})" if is_told_more else view.state.value


def _facts(view: JobView) -> list[tuple[str, object]]:
    progress = None if view.progress is None else msgspec.json.encode(view.progress).decode()
    return [
        ("id", view.id),
        ("from", "the history" if view.source == "history" else None),
        ("task", f"{view.queue}/{_task(view)}"),
        ("state", _state(view)),
        ("tenant", view.tenant),
        ("key", view.key),
        ("priority", view.priority),
        ("attempts made", attempts(view.attempts_made, view.max_attempts)),
        ("losses", view.losses or None),
        ("snoozed", _often(view.snoozes, view.snooze_reason)),
        ("parked", _often(view.parked, view.parked_reason)),
        ("enqueued", instant(view.enqueued_at)),
        ("due", instant(view.due_at)),
        ("started", instant(view.started_at)),
        ("lease until", instant(view.lease_until)),
        ("worker", view.worker),
        ("finished", instant(view.finished_at)),
        ("progress", progress),
        ("headers", ", ".join(f"{name}={value}" for name, value in view.headers.items()) or None),
    ]


def _text(encoded: msgspec.Raw | bytes | None) -> str | None:
    return None if encoded is None else bytes(encoded).decode(errors="backslashreplace")


@click.command(
    epilog=example(
        "faena jobs shop.tasks:app mail --state dead --limit 20",
        "faena jobs mail --state dead --cursor lMQGkzWzdR20sDE3OTQ4",
    )
)
@words("[MODULE:APP] QUEUE")
@click.option(
    "--state",
    type=click.Choice([state.value for state in State]),
    default=State.DEAD.value,
    show_default=True,
    help="The state of the jobs.",
)
@click.option(
    "--limit", type=Whole(1, 1000), default=50, show_default=True, help="Jobs on one page."
)
@click.option("--cursor", help="The cursor printed below the previous page.")
@click.option("--newest-first", is_flag=True, help="List the newest first.")
@click.option(
    "--source",
    type=click.Choice(["both", "broker", "history"]),
    default="both",
    show_default=True,
    help="Where to read them, if the queue has a history.",
)
@common
@click.pass_obj
def jobs(
    output: Output,
    words: tuple[str, ...],
    *,
    state: str,
    limit: int,
    cursor: str | None,
    newest_first: bool,
    source: Source,
) -> None:
    """List the jobs of a queue in one state, a page at a time."""
    app, queue, _ = app_and_queue(words)

    async def read() -> Page:
        chosen = source if source != "both" else await _reachable(app, queue.name)
        return await queue.jobs(
            state, limit=limit, cursor=cursor, is_newest_first=newest_first, source=chosen
        )

    page = session.run(app, read)

    def view(console: Console) -> None:
        heads = ("id", "task", "tenant", "attempts made", "when", "from", "last error")
        console.print(Text(f"{state} jobs of {queue.name}:", style="bold"))
        spare = ("attempts made", "from", "tenant", "when", "task")
        console.print(table(heads, map(_row, page.jobs), spare=spare, text="last error"))
        if page.cursor:
            console.print(Text(plain(f"more: --cursor {page.cursor}")))

    documents = [_document(one, is_open=False) for one in page.jobs]
    output.list(documents, view, page.cursor)


async def _reachable(app: Faena, queue: str) -> Source:
    """Both, or the broker alone, with a warning, if the history does not answer."""
    pg = next((one for one in app.attachments.values() if hasattr(one, "has_history")), None)
    if pg is None or not pg.has_history or not pg.history.covers(queue):
        return "both"
    try:
        await pg.reach(CONNECT_S)
    except StoreUnavailable as error:
        said = f"only the broker's jobs are shown, as --source broker does: {error}"
        click.echo(f"faena: the history cannot be read, so {' '.join(said.split())}", err=True)
        return "broker"
    return "both"


def _when(view: JobView) -> int | None:
    """The most relevant instant of a job in its state."""
    began = view.started_at if view.state is State.RUNNING else view.enqueued_at
    return view.finished_at or view.due_at or began


def _row(view: JobView) -> tuple[object, ...]:
    last = view.errors[-1] if view.errors else None
    when = instant(_when(view)) or ""
    said = f"{titled(last.name, last.code)}: {last.message}".split("\n")[0] if last else ""
    where = "history" if view.source == "history" else ""
    return view.id, _task(view), view.tenant or "", view.attempts_made, when, where, said


def _task(view: JobView) -> str:
    return "(unreadable)" if view.is_unreadable else view.task
