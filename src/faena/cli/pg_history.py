"""Commands on the history of jobs. Payloads are not shown: they may be confidential."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from faena.cli.argument import MOMENT, Commands, Whole, by, common, confirm, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, facts, plain, table
from faena.cli.pg_session import Asked, find_pg, run
from faena.cli.session import run as run_with_broker

if TYPE_CHECKING:
    from faena.pg import PastJob, PastPage, Postgres, TaskStatistics

_FILTERS = ("queue", "task", "tenant")


def _filters(command: Any) -> Any:
    """The options that choose rows."""
    command = click.option("--until", type=MOMENT, help="Ended before.")(command)
    command = click.option("--since", type=MOMENT, help="Ended then or later.")(command)
    for name in reversed(_FILTERS):
        command = click.option(f"--{name}", help=f"Only this {name}.")(command)
    return command


@click.group(
    cls=Commands,
    epilog=example(
        "faena pg history status shop.tasks:app",
        "faena pg history search --queue mail --state dead --error timeout",
        "faena pg history stats --queue mail --window 1h",
    ),
)
def history() -> None:
    """What has become of jobs, beyond what the broker keeps.

    The app must keep it: `Postgres(app, history=History())`. Every command takes --json.
    """


@history.command(epilog=example("faena pg history status shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def status(output: Output, words: tuple[str, ...]) -> None:
    """Show how far the history is behind the broker, and what it lacks; asks the broker too."""
    target, _ = split(words)
    found = find_pg(target)
    view = run_with_broker(found.app, found.history.view)
    age = None if view.oldest_s is None else f"{view.oldest_s:.1f} s"

    def draw(console: Console) -> None:
        rows: list[tuple[str, object]] = [
            ("waiting entries", view.entries),
            ("bytes", view.size or None),
            ("oldest", f"{age}, late" if view.is_late else age),
            ("stored", view.stored),
            ("lost", view.lost),
        ]
        console.print(facts(rows))

    output.show(document(view), draw)


@history.command(
    epilog=example("faena pg history search --tenant acme --since 2026-11-01 --state dead")
)
@words("[MODULE:APP]")
@_filters
@click.option("--id", help="Only this job.")
@click.option("--state", help="How they ended: completed, dead, cancelled, expired, removed, …")
@click.option("--error", help="A part of the name, code or message of their error.")
@click.option("--payload", help='JSON that the payload contains, such as \'{"to": "ana"}\'.')
@click.option("--limit", type=Whole(1, 1000), default=50, show_default=True, help="On one page.")
@click.option("--cursor", help="The cursor printed below the previous page.")
@common
@click.pass_obj
def search(
    output: Output, words: tuple[str, ...], limit: int, cursor: str | None, **given: Any
) -> None:
    """Find ends of jobs, newest first."""
    target, _ = split(words)
    found = find_pg(target)
    fields = _given(given)
    if "payload" in fields:
        fields["payload"] = _json(fields["payload"])

    async def look() -> PastPage:
        page = await found.history.search(limit=limit, cursor=cursor, **fields)
        if not page.jobs and "queue" in fields:
            await _refuse_unknown(found, fields["queue"])
        return page

    page = run(found, look)

    def draw(console: Console) -> None:
        heads = ("id", "task", "state", "tenant", "finished", "error")
        spare = ("tenant", "finished", "task")
        console.print(table(heads, map(_row, page.jobs), spare=spare, text="error"))
        if page.cursor:
            console.print(Text(plain(f"more: --cursor {page.cursor}")))

    output.list([document(one) for one in page.jobs], draw, page.cursor)


@history.command(epilog=example("faena pg history stats --queue mail --window 1h"))
@words("[MODULE:APP]")
@_filters
@click.option("--window", help="A row for each such time, for example 1h; else one for all.")
@common
@click.pass_obj
def stats(output: Output, words: tuple[str, ...], window: str | None, **given: Any) -> None:
    """Show numbers, waits, runs and errors of each task."""
    target, _ = split(words)
    found = find_pg(target)
    rows = run(found, lambda: found.history.statistics(window=window, **_given(given)))

    def draw(console: Console) -> None:
        heads = ("task", "from", "jobs", "errors", "wait p50", "wait p95", "run p50", "run p95")
        console.print(table(heads, map(_numbers, rows), spare=("from",)))

    output.list([document(one) for one in rows], draw, None)


@history.command(epilog=example("faena pg history erase acme --yes"))
@words("[MODULE:APP] TENANT")
@click.option("--yes", is_flag=True, help="Do not ask.")
@by
@common
@click.pass_obj
def erase(output: Output, words: tuple[str, ...], *, yes: bool, by: str) -> None:
    """Delete what the history has of a tenant, and what waits for it in the broker."""
    target, (tenant,) = split(words, "TENANT")
    found = find_pg(target)
    confirm(f"delete the history of tenant {tenant}?", yes=yes)

    async def work() -> int:
        await Asked(by, "history erase", tenant).note(found)
        return await found.history.erase(tenant=tenant)

    number = run_with_broker(found.app, work)
    output.say({"erased": number}, f"erased {number} rows")


async def _refuse_unknown(found: Postgres, queue: str) -> None:
    """A queue that is no longer in the code may still have a history."""
    if not (await found.history.search(queue=queue, limit=1)).jobs:
        _ = found.app.queues[queue]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"--payload must be JSON: {error}") from None


def _row(one: PastJob) -> tuple[object, ...]:
    task, said = f"{one.queue}/{one.task}", f"{one.error}: {one.message}" if one.error else ""
    finished = one.finished_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return one.id, task, one.state, one.tenant or "", finished, said.split("\n", maxsplit=1)[0]


def _numbers(one: TaskStatistics) -> tuple[object, ...]:
    start = one.start.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if one.start else ""
    rate = "" if one.error_rate is None else f"{one.error_rate:.1%}"
    times = (one.wait.p50, one.wait.p95, one.run.p50, one.run.p95)
    told = ("" if each is None else f"{each:.3f} s" for each in times)
    return f"{one.queue}/{one.task}", start, one.number, rate, *told
