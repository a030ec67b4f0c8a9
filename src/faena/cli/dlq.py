"""Commands of the dead-letter desk. Payloads are shown only on request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.text import Text

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import app_and_queue, find_app, find_queue
from faena.cli.argument import DURATION, Commands, Whole, by, common, example, split, words
from faena.cli.explain import retried_at
from faena.cli.json_output import document
from faena.cli.output import Output, attempts, facts, failures, instant, plain, table, titled
from faena.deadletter.desk import Desk
from faena.deadletter.views import DeadGroup, DeadLetter, DeadStats, Dealt, Status
from faena.errors import InvalidTransition, JobError, JobNotFound
from faena.queue import Queue

F = TypeVar("F", bound=Callable[..., Any])

_LOOKED_AT = 50
"""The most refused jobs to look up, to tell what they were retried as."""


@click.group(
    cls=Commands,
    epilog=example(
        "faena dlq list shop.tasks:app --error ETIMEDOUT",
        "faena dlq redrive mail --error ETIMEDOUT --rate 50/s --canary 10",
    ),
)
def dlq() -> None:
    """The dead-letter desk: find, retry, discard or resolve dead jobs.

    Every command takes --json.
    """


def filters(command: F) -> F:
    """The options that select dead jobs."""
    for option in reversed(
        (
            click.option("--tenant", help="Only jobs of this tenant."),
            click.option("--task", help="Only jobs of this task."),
            click.option("--error", help="Only jobs with this error: an exception or a code."),
            click.option("--fingerprint", help="Only this kind of error; see `dlq groups`."),
            click.option("--older-than", type=DURATION, help="Only jobs dead for longer: 24h."),
            click.option("--newer-than", type=DURATION, help="Only jobs dead for less: 1h."),
        )
    ):
        command = option(command)
    return command


def decision(command: F) -> F:
    """Who does this, and why."""
    return by(click.option("--reason", help="Why.")(command))


def chosen(given: Sequence[str]) -> tuple[Faena, list[str] | None]:
    """The app and the given queues; None for all."""
    target, names = split(given, rest="QUEUE")
    app = find_app(target)
    return app, [find_queue(app, name).name for name in names] or None


# -- reading ------------------------------------------------------------------------------------


@dlq.command("list", epilog=example("faena dlq list shop.tasks:app mail --tenant acme --limit 20"))
@words("[MODULE:APP] [QUEUE]...")
@click.option(
    "--status",
    type=click.Choice([str(one) for one in Status]),
    help="Only jobs with this status.  [default: all]",
)
@filters
@click.option(
    "--limit", type=Whole(1, 200), default=50, show_default=True, help="Jobs on one page."
)
@click.option("--cursor", help="The cursor printed below the previous page.")
@click.option("--oldest-first", is_flag=True, help="List the oldest first.")
@common
@click.pass_obj
def list_(
    output: Output,
    words: tuple[str, ...],
    *,
    limit: int,
    cursor: str | None,
    oldest_first: bool,
    **wanted: Any,
) -> None:
    """List dead jobs of all queues, or of the given ones, newest first.

    Jobs that were retried, discarded or resolved stay in the list until retention removes them;
    --status pending leaves them out.
    """
    app, queues = chosen(words)
    page = session.run(
        app,
        lambda: app.dead_letters.list(
            queues=queues, limit=limit, cursor=cursor, is_newest_first=not oldest_first, **wanted
        ),
    )

    def view(console: Console) -> None:
        heads = ("queue", "id", "task", "tenant", "status", "died", "error")
        spare = ("tenant", "task", "died")
        console.print(table(heads, map(_row, page.items), spare=spare, text="error"))
        if page.cursor:
            console.print(Text(plain(f"more: --cursor {page.cursor}")))

    documents = [_document(one, is_open=False) for one in page.items]
    output.list(documents, view, page.cursor)


def _row(letter: DeadLetter) -> tuple[object, ...]:
    said = _said(letter.error.name, letter.error.code, letter.error.message)
    died = instant(letter.died_at) or ""
    tenant, status = letter.tenant or "", letter.status.value
    return letter.queue, letter.id, letter.task, tenant, status, died, said


def _said(name: str, code: str | None, message: str) -> str:
    return f"{titled(name, code)}: {message}".split("\n")[0]


def _document(letter: DeadLetter, *, is_open: bool) -> dict[str, Any]:
    told: dict[str, Any] = document(letter)
    if not is_open:
        del told["payload"]
    return told


@dlq.command(epilog=example("faena dlq show shop.tasks:app mail 01JCXYZ --payload"))
@words("[MODULE:APP] QUEUE ID")
@click.option("--payload", is_flag=True, help="Show the payload as well.")
@common
@click.pass_obj
def show(output: Output, words: tuple[str, ...], *, payload: bool) -> None:
    """Show one dead job: its status, errors and links to other jobs."""
    app, queue, (job_id,) = app_and_queue(words, "ID")
    letter = session.run(app, lambda: app.dead_letters.get(queue.name, job_id))
    if letter is None:
        raise JobNotFound(f"no dead job {job_id} in queue {queue.name}", op="dlq")
    told = _document(letter, is_open=payload)
    output.show(told, lambda console: _draw(console, letter, is_open=payload))


def _draw(console: Console, letter: DeadLetter, *, is_open: bool) -> None:
    console.print(facts(_facts(letter)))
    if is_open and letter.payload is not None:
        text = bytes(letter.payload).decode(errors="backslashreplace")
        console.print(facts([("payload", text)]))
    failures(console, letter.errors)


def _facts(letter: DeadLetter) -> list[tuple[str, object]]:
    decided = letter.resolution
    by = decided and f"{decided.action} by {decided.by}, {instant(decided.at)}: {decided.reason}"
    return [
        ("id", letter.id),
        ("task", f"{letter.queue}/{letter.task}"),
        ("status", letter.status.value),
        ("decided", by),
        ("tenant", letter.tenant),
        ("key", letter.key),
        ("died", instant(letter.died_at)),
        ("attempts made", attempts(letter.attempts_made, letter.max_attempts)),
        ("losses", letter.losses or None),
        ("error", _said(letter.error.name, letter.error.code, letter.error.message)),
        ("fingerprint", letter.fingerprint),
        ("retried as", letter.retried_as),
        ("retry of", letter.retry_of),
        ("first of its line", letter.origin if letter.retry_of else None),
        ("automatic retries", letter.auto_retries or None),
        ("next", retried_at(letter)),
    ]


@dlq.command(epilog=example("faena dlq groups shop.tasks:app", "faena dlq groups mail --limit 5"))
@words("[MODULE:APP] [QUEUE]...")
@click.option("--limit", type=Whole(1, 200), default=20, show_default=True, help="How many groups.")
@common
@click.pass_obj
def groups(output: Output, words: tuple[str, ...], limit: int) -> None:
    """Group dead jobs by kind of error, those with the most pending jobs first."""
    app, queues = chosen(words)
    found = session.run(app, lambda: app.dead_letters.groups(queues=queues, limit=limit))
    heads = ("fingerprint", "queue", "pending", "total", "last", "error")

    def row(group: DeadGroup) -> tuple[object, ...]:
        said = _said(group.name, group.code, group.sample)
        last = instant(group.last_at) or ""
        return group.fingerprint, group.queue, group.pending, group.total, last, said

    output.list(
        found,
        lambda console: console.print(
            table(heads, map(row, found), spare=("total", "last"), text="error")
        ),
    )


@dlq.command(epilog=example("faena dlq stats shop.tasks:app", "faena dlq stats mail --json"))
@words("[MODULE:APP] [QUEUE]...")
@common
@click.pass_obj
def stats(output: Output, words: tuple[str, ...]) -> None:
    """Count dead jobs by queue and status, and show the oldest pending one."""
    app, queues = chosen(words)
    seen = session.run(app, lambda: app.dead_letters.stats(queues=queues))
    output.show(seen, lambda console: console.print(facts(_numbers(seen))))


def _numbers(seen: DeadStats) -> list[tuple[str, object]]:
    oldest = f"{seen.oldest_id}, {instant(seen.oldest_at)}" if seen.oldest_id else None
    return [
        ("total", seen.total),
        *((status, number) for status, number in seen.by_status.items()),
        *((f"in {queue}", number) for queue, number in seen.by_queue.items()),
        ("in the last hour", seen.new),
        ("to be retried", seen.due),
        ("oldest pending", oldest),
    ]


# -- changing -----------------------------------------------------------------------------------


def _deal(
    output: Output,
    given: Sequence[str],
    done: str,
    work: Callable[[Desk, str, list[str]], Awaitable[Sequence[Dealt]]],
) -> None:
    """Do the same to each job; if one is refused, the others are still changed."""
    app, queue, ids = app_and_queue(given, "ID", rest="ID")

    async def deal() -> tuple[Sequence[Dealt], dict[str, str]]:
        try:
            dealt = await work(app.dead_letters, queue.name, ids)
        except JobError:  # the desk raises for a single job
            dealt = [await _refused(app, queue, ids[0])]
        return dealt, await _retried(app, queue, dealt)

    dealt, why = session.run(app, deal)
    rows = [
        (one.id, f"refused: {why[one.id]}" if one.refused else done, one.new_id or "")
        for one in dealt
    ]
    output.list(dealt, lambda console: console.print(table(("id", "outcome", "new job"), rows)))
    refused = [one for one in dealt if one.refused]
    if refused:
        more = f" (and {len(refused) - 1} others)" if len(refused) > 1 else ""
        if refused[0].refused == "unknown":
            missing = f"no dead job {refused[0].id} in queue {queue.name}{more}"
            raise JobNotFound(missing, op="dlq")
        first = refused[0].id
        raise InvalidTransition(f"dead job {first} is {why[first]}{more}", op="dlq")


async def _retried(app: Faena, queue: Queue, dealt: Sequence[Dealt]) -> dict[str, str]:
    """Why each job was refused; for some that were retried before, with the new job's id."""
    why = {one.id: one.refused for one in dealt if one.refused}
    for job in [job for job, refused in why.items() if refused == Status.RETRIED][:_LOOKED_AT]:
        letter = await app.dead_letters.get(queue.name, job)
        if letter and letter.retried_as:
            why[job] = f"retried as {letter.retried_as}"
    return why


async def _refused(app: Faena, queue: Queue, job_id: str) -> Dealt:
    """Why a single job was refused, in the form the desk uses for many."""
    letter = await app.dead_letters.get(queue.name, job_id)
    state = letter.status if letter else await queue.handle(job_id).state()
    return Dealt(job_id, refused=state.value if state else "unknown")


@dlq.command(epilog=example("faena dlq retry shop.tasks:app mail 01JCXYZ 01JCXZA --by ana"))
@words("[MODULE:APP] QUEUE ID...")
@decision
@common
@click.pass_obj
def retry(output: Output, words: tuple[str, ...], by: str, reason: str | None) -> None:
    """Retry dead jobs as new jobs, linked to them, with high priority and fresh attempts."""

    def work(desk: Desk, queue: str, ids: list[str]) -> Awaitable[Sequence[Dealt]]:
        return desk.retry_many_as_new(queue, ids, by=by, reason=reason or "manual retry")

    _deal(output, words, "retried", work)


@dlq.command(epilog=example("faena dlq discard mail 01JCXYZ --reason 'nobody needs it'"))
@words("[MODULE:APP] QUEUE ID...")
@decision
@common
@click.pass_obj
def discard(output: Output, words: tuple[str, ...], by: str, reason: str | None) -> None:
    """Mark dead jobs as given up; they are kept until retention removes them."""

    def work(desk: Desk, queue: str, ids: list[str]) -> Awaitable[Sequence[Dealt]]:
        return desk.discard(queue, *ids, by=by, reason=reason or "")

    _deal(output, words, "discarded", work)


@dlq.command(epilog=example("faena dlq resolve mail 01JCXYZ --reason 'sent by hand' --by ana"))
@words("[MODULE:APP] QUEUE ID...")
@decision
@common
@click.pass_obj
def resolve(output: Output, words: tuple[str, ...], by: str, reason: str | None) -> None:
    """Mark dead jobs as resolved by hand; they are kept until retention removes them."""

    def work(desk: Desk, queue: str, ids: list[str]) -> Awaitable[Sequence[Dealt]]:
        return desk.resolve(queue, *ids, by=by, reason=reason or "")

    _deal(output, words, "resolved", work)
