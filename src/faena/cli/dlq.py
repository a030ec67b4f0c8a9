"""Commands of the dead-letter desk. What jobs carry is shown only on request."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import click
import msgspec
from rich.console import Console
from rich.text import Text

from faena.app import Faena
from faena.cli import session
from faena.cli.argument import DURATION, RATE, common, example, split, words
from faena.cli.output import Output, facts, instant, plain, table
from faena.cli.target import find_app, find_queue
from faena.deadletter.desk import Desk
from faena.deadletter.item import DeadGroup, DeadLetter, DeadStats, Dealt, Status
from faena.deadletter.redrive import MOST_CANARIES, RedriveView
from faena.errors import InvalidTransition, JobNotFound
from faena.limits import Limit

F = TypeVar("F", bound=Callable[..., Any])


@click.group(
    epilog=example(
        "faena dlq list shop.tasks:app --error ETIMEDOUT",
        "faena dlq redrive mail --error ETIMEDOUT --rate 50/s --canary 10",
    )
)
def dlq() -> None:
    """The dead-letter desk: look at dead jobs, retry them, deal with them."""


def _filters(command: F) -> F:
    """Which dead jobs are meant."""
    for option in reversed(
        (
            click.option("--tenant", help="Of this tenant."),
            click.option("--task", help="Of this task."),
            click.option("--error", help="Died of this: an exception's name, or a code."),
            click.option("--group", "fingerprint", help="Of this group; see `dlq groups`."),
            click.option("--older-than", type=DURATION, help="Dead for longer: 24h."),
            click.option("--newer-than", type=DURATION, help="Dead for less: 1h."),
        )
    ):
        command = option(command)
    return command


def _decision(command: F) -> F:
    """Who decides, and why."""
    by = click.option("--by", default="operator", show_default=True, help="Who decides.")
    return by(click.option("--reason", help="Why.")(command))


def _chosen(given: Sequence[str]) -> tuple[Faena, list[str] | None]:
    """The app, and the queues that are named; None for all."""
    target, names = split(given, rest="QUEUE")
    app = find_app(target)
    return app, [find_queue(app, name).name for name in names] or None


# -- looking ------------------------------------------------------------------------------------


@dlq.command("list", epilog=example("faena dlq list shop.tasks:app mail --tenant acme --limit 20"))
@words("[MODULE:APP] [QUEUE]...")
@click.option("--status", type=click.Choice([str(one) for one in Status]))
@_filters
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@click.option("--cursor", help="Where the page before this one ended.")
@click.option("--oldest-first", is_flag=True)
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
    """List dead jobs of all queues, or of some, the newest first, a page at a time."""
    app, queues = _chosen(words)
    page = session.run(
        app,
        lambda: app.dead_letters.list(
            queues=queues, limit=limit, cursor=cursor, is_newest_first=not oldest_first, **wanted
        ),
    )

    def view(console: Console) -> None:
        heads = ("queue", "id", "task", "tenant", "status", "died", "error")
        console.print(table(heads, map(_row, page.items)))
        if page.cursor:
            console.print(Text(plain(f"more: --cursor {page.cursor}")))

    documents = [_document(one, is_open=False) for one in page.items]
    output.show({"items": documents, "cursor": page.cursor}, view)


def _row(letter: DeadLetter) -> tuple[object, ...]:
    said = _said(letter.error.name, letter.error.code, letter.error.message)
    died = instant(letter.died_at) or ""
    tenant, status = letter.tenant or "", letter.status.value
    return letter.queue, letter.id, letter.task, tenant, status, died, said


def _said(name: str, code: str | None, message: str) -> str:
    head = f"{name} ({code})" if code else name
    return f"{head}: {message}".split("\n")[0]


def _document(letter: DeadLetter, *, is_open: bool) -> dict[str, Any]:
    document = {name: getattr(letter, name) for name in letter.__struct_fields__}
    if not is_open:
        del document["payload"]
    return document


@dlq.command(epilog=example("faena dlq show shop.tasks:app mail 01JCXYZ --payload"))
@words("[MODULE:APP] QUEUE ID")
@click.option("--payload", is_flag=True, help="Show the payload, too.")
@common
@click.pass_obj
def show(output: Output, words: tuple[str, ...], *, payload: bool) -> None:
    """Show everything known of one dead job."""
    target, (name, job_id) = split(words, "QUEUE", "ID")
    app = find_app(target)
    queue = find_queue(app, name)
    letter = session.run(app, lambda: app.dead_letters.get(queue.name, job_id))
    if letter is None:
        raise JobNotFound(f"no dead job {job_id} in queue {name}", op="dlq")
    document = _document(letter, is_open=payload)
    output.show(document, lambda console: _draw(console, letter, is_open=payload))


def _draw(console: Console, letter: DeadLetter, *, is_open: bool) -> None:
    console.print(facts(_facts(letter)))
    if is_open and letter.payload is not None:
        text = bytes(letter.payload).decode(errors="backslashreplace")
        console.print(facts([("payload", text)]))
    for error in letter.errors:
        head = f"attempt {error.attempt}" if error.attempt else "lost"
        said = _said(error.name, error.code, error.message)
        console.print(Text(plain(f"\n{head}: {said}"), style="bold"))
        console.print(Text(plain((error.stack or "").rstrip())))


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
        ("attempts", letter.attempts),
        ("losses", letter.losses or None),
        ("error", _said(letter.error.name, letter.error.code, letter.error.message)),
        ("group", letter.fingerprint),
        ("retried as", letter.retried_as),
        ("retry of", letter.retry_of),
        ("first of its line", letter.origin),
        ("automatic retries", letter.auto_retries or None),
    ]


@dlq.command(epilog=example("faena dlq groups shop.tasks:app", "faena dlq groups mail --limit 5"))
@words("[MODULE:APP] [QUEUE]...")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@common
@click.pass_obj
def groups(output: Output, words: tuple[str, ...], limit: int) -> None:
    """Show dead jobs by kind of error, those with the most pending ones first."""
    app, queues = _chosen(words)
    found = session.run(app, lambda: app.dead_letters.groups(queues=queues, limit=limit))
    heads = ("group", "queue", "pending", "total", "last", "error")

    def row(group: DeadGroup) -> tuple[object, ...]:
        said = _said(group.name, group.code, group.sample)
        last = instant(group.last_at) or ""
        return group.fingerprint, group.queue, group.pending, group.total, last, said

    output.show(found, lambda console: console.print(table(heads, map(row, found))))


@dlq.command(epilog=example("faena dlq stats shop.tasks:app", "faena dlq stats mail --json"))
@words("[MODULE:APP] [QUEUE]...")
@common
@click.pass_obj
def stats(output: Output, words: tuple[str, ...]) -> None:
    """Show how many are dead, by queue and status, and since when the oldest one waits."""
    app, queues = _chosen(words)
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


# -- deciding -----------------------------------------------------------------------------------


def _deal(
    output: Output,
    given: Sequence[str],
    done: str,
    work: Callable[[Desk, str, list[str]], Awaitable[Sequence[Dealt]]],
) -> None:
    """Do the same to each job; one that refuses does not keep the others from it."""
    target, (name, *ids) = split(given, "QUEUE", "ID", rest="ID")
    app = find_app(target)
    queue = find_queue(app, name)
    dealt = session.run(app, lambda: work(app.dead_letters, queue.name, ids))
    rows = [(one.id, one.refused or done, one.new_id or "") for one in dealt]
    output.show(dealt, lambda console: console.print(table(("id", "outcome", "new job"), rows)))
    refused = [one for one in dealt if one.refused]
    if refused:
        more = f" (and {len(refused) - 1} others)" if len(refused) > 1 else ""
        kind = JobNotFound if refused[0].refused == "unknown" else InvalidTransition
        raise kind(f"dead job {refused[0].id} is {refused[0].refused}{more}", op=done)


@dlq.command(epilog=example("faena dlq retry shop.tasks:app mail 01JCXYZ 01JCXZA --by ana"))
@words("[MODULE:APP] QUEUE ID...")
@_decision
@common
@click.pass_obj
def retry(output: Output, words: tuple[str, ...], by: str, reason: str | None) -> None:
    """Retry dead jobs as new ones, at high priority with fresh attempts."""

    def work(desk: Desk, queue: str, ids: list[str]) -> Awaitable[Sequence[Dealt]]:
        return desk.retry_many(queue, ids, by=by, reason=reason or "manual retry")

    _deal(output, words, "retried", work)


@dlq.command(epilog=example("faena dlq discard mail 01JCXYZ --reason 'nobody needs it'"))
@words("[MODULE:APP] QUEUE ID...")
@_decision
@common
@click.pass_obj
def discard(output: Output, words: tuple[str, ...], by: str, reason: str | None) -> None:
    """Give dead jobs up; they stay until retention ends."""

    def work(desk: Desk, queue: str, ids: list[str]) -> Awaitable[Sequence[Dealt]]:
        return desk.discard(queue, *ids, by=by, reason=reason or "")

    _deal(output, words, "discarded", work)


@dlq.command(epilog=example("faena dlq resolve mail 01JCXYZ --reason 'sent by hand' --by ana"))
@words("[MODULE:APP] QUEUE ID...")
@_decision
@common
@click.pass_obj
def resolve(output: Output, words: tuple[str, ...], by: str, reason: str | None) -> None:
    """Say that dead jobs were dealt with by hand; they stay until retention ends."""

    def work(desk: Desk, queue: str, ids: list[str]) -> Awaitable[Sequence[Dealt]]:
        return desk.resolve(queue, *ids, by=by, reason=reason or "")

    _deal(output, words, "resolved", work)


# -- many, by and by ----------------------------------------------------------------------------


@dlq.command(
    epilog=example(
        "faena dlq redrive shop.tasks:app mail --error ETIMEDOUT --rate 50/s --canary 10",
        "faena dlq redrive mail --resume 4f2a90c1d3e5",
        "faena dlq redrive mail --stop 4f2a90c1d3e5",
    )
)
@words("[MODULE:APP] QUEUE")
@_filters
@click.option("--rate", type=RATE, help="How fast: 50/s, 100/min.")
@click.option(
    "--canary",
    type=click.IntRange(0, MOST_CANARIES),
    default=0,
    help="So many first; the others follow when all of them have completed.",
)
@click.option("--failures", type=click.IntRange(0), help="End it when more than this die again.")
@click.option("--resume", metavar="ID", help="Go on with one that was stopped, or left alone.")
@click.option("--stop", metavar="ID", help="End one, whoever drives it.")
@_decision
@common
@click.pass_obj
def redrive(
    output: Output,
    words: tuple[str, ...],
    *,
    resume: str | None,
    stop: str | None,
    reason: str | None,
    rate: Limit | None,
    **given: Any,
) -> None:
    """Retry all pending dead jobs that a filter asks for, oldest first; an interrupted one goes on
    with --resume.
    """
    target, (name,) = split(words, "QUEUE")
    if resume and stop:
        raise click.UsageError("--resume or --stop must be given, and not both")
    app = find_app(target)
    queue = find_queue(app, name).name
    desk, report = app.dead_letters, _Progress(output)

    def work() -> Awaitable[RedriveView]:
        if stop:
            return desk.stop_redrive(queue, stop)
        if resume:
            return desk.resume_redrive(queue, resume, report=report)
        why = reason or "redrive"
        return desk.redrive(queue, rate=rate, reason=why, report=report, **given)

    view = session.run(app, work)
    output.say(view, _sentence(view))
    if view.state == "failed":
        raise InvalidTransition(
            f"redrive {view.id} has failed: {view.died} of its jobs are dead again", op="redrive"
        )


@dlq.command(epilog=example("faena dlq redrives shop.tasks:app mail"))
@words("[MODULE:APP] QUEUE")
@common
@click.pass_obj
def redrives(output: Output, words: tuple[str, ...]) -> None:
    """Show the last redrives of a queue, the newest first."""
    target, (name,) = split(words, "QUEUE")
    app = find_app(target)
    queue = find_queue(app, name).name
    found = session.run(app, lambda: app.dead_letters.redrives(queue))
    heads = ("id", "state", "retried", "dead again", "canary", "rate", "begun", "by", "reason")

    def row(one: RedriveView) -> tuple[object, ...]:
        begun = instant(one.begun_at) or ""
        counts = one.moved, one.died, one.canary
        return one.id, one.state, *counts, one.rate or "", begun, one.by, one.reason

    output.show(found, lambda console: console.print(table(heads, map(row, found))))


class _Progress:
    """Says on standard error how a redrive stands, which keeps standard output for the answer."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._said = ""

    def __call__(self, view: RedriveView) -> None:
        line = _sentence(view)
        if line != self._said and not self._output.is_json:
            self._said = line
            sys.stderr.write(line + "\n")


def _sentence(view: RedriveView) -> str:
    waiting = f", {view.waiting} canaries not finished" if view.waiting else ""
    return f"redrive {view.id}: {view.state}, {view.moved} retried, {view.died} dead again{waiting}"


@click.command(
    "retry-failed",
    epilog=example("faena retry-failed shop.tasks:app", "faena retry-failed mail --rate 50/s"),
)
@words("[MODULE:APP] [QUEUE]...")
@click.option("--rate", type=RATE, help="How fast: 50/s, 100/min.")
@_decision
@common
@click.pass_obj
def retry_failed(
    output: Output, words: tuple[str, ...], rate: Limit | None, by: str, reason: str | None
) -> None:
    """Retry every pending dead job of all queues, or of some; see `dlq redrive`."""
    app, queues = _chosen(words)
    report, why = _Progress(output), reason or "retry-failed"

    async def work() -> list[RedriveView]:
        desk = app.dead_letters
        return [
            await desk.redrive(queue, rate=rate, by=by, reason=why, report=report)
            for queue in queues or app.queues
        ]

    done = session.run(app, work)
    lines = "\n".join(f"{view.queue}: {view.moved} retried" for view in done)
    output.show(msgspec.to_builtins(done), lambda console: console.print(Text(lines)))


COMMANDS = (dlq, retry_failed)
