"""`faena stats`: what happened to the jobs of a queue, and how long they waited and ran."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import click
from rich.console import Console
from rich.text import Text

from faena.cli import session
from faena.cli.app_lookup import app_and_queue
from faena.cli.argument import WINDOW, common, example, words
from faena.cli.json_output import document, iso
from faena.cli.output import Output, instant, table
from faena.telemetry.statistics import QueueStatistics, TaskStatistics, Timing
from faena.values.duration import describe

_HEADS: Final = (
    *("task", "started", "completed", "retried", "dead", "failed"),
    *("wait p50", "wait p95", "wait p99", "run p50", "run p95", "run p99"),
)
_SPARE: Final = ("wait p99", "run p99", "started", "wait p50", "run p50", "retried")
_LONG_US: Final = 120_000_000


@click.command(
    epilog=example("faena stats shop.tasks:app mail", "faena stats mail --since 24h --by-task")
)
@words("[MODULE:APP] QUEUE")
@click.option(
    "--since",
    "window",
    type=WINDOW,
    default="1h",
    show_default=True,
    help="How far back, from 1m to 30d: whole minutes, and whole hours beyond two days.",
)
@click.option("--by-task", is_flag=True, help="Also show each task by itself.")
@common
@click.pass_obj
def stats(output: Output, words: tuple[str, ...], *, window: str, by_task: bool) -> None:
    """Show what happened to the jobs of a queue lately, and how long they waited and ran.

    The numbers are kept by the broker for 30 days. Times are those of attempts, by workers' clocks.
    """
    app, queue, _ = app_and_queue(words)
    found = session.run(app, lambda: queue.statistics(window))
    tasks = found.tasks if by_task else ()
    told = {
        "queue": found.queue,
        "since": iso(found.since),
        "until": iso(found.until),
        "counters": found.counters,
        **_numbers(found.together()),
    }
    if by_task:
        told["tasks"] = [{"task": one.task, **_numbers(one)} for one in tasks]
    output.show(told, lambda console: _draw(console, found, tasks))


def _numbers(one: TaskStatistics) -> dict[str, Any]:
    names = ("started", "completed", "retried", "dead", "error_rate")
    times = {name: document(getattr(one, name)) for name in ("wait", "run", "total")}
    return {name: getattr(one, name) for name in names} | times


def _draw(console: Console, found: QueueStatistics, tasks: Iterable[TaskStatistics]) -> None:
    rows = [_row("all", found.together()), *(_row(one.task, one) for one in tasks)]
    console.print(table(_HEADS, rows, spare=_SPARE))
    window = f"{instant(found.since)} to {instant(found.until)}"
    happened = ", ".join(f"{number} {name}" for name, number in sorted(found.counters.items()))
    console.print(Text(f"{found.queue} from {window}: {happened or 'nothing happened'}"))


def _row(name: str, one: TaskStatistics) -> tuple[object, ...]:
    failed = "-" if one.error_rate is None else f"{one.error_rate:.1%}"
    counted = (one.started, one.completed, one.retried, one.dead)
    return (name, *counted, failed, *_times(one.wait), *_times(one.run))


def _times(timing: Timing) -> tuple[str, str, str]:
    return _time(timing.p50_us), _time(timing.p95_us), _time(timing.p99_us)


def _time(us: float | None) -> str:
    """Three digits: quantiles are not known better."""
    if us is None:
        return "-"
    if us >= _LONG_US:
        return describe(round(us / 1e6) * 1_000_000)
    size, unit = (1e6, "s") if us >= 1e6 else (1e3, "ms")
    return f"{float(f'{us / size:.3g}'):g} {unit}"
