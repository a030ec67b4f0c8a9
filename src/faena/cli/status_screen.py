"""Draws `faena status`: what is wrong, then queues, upstreams, features, workers and the broker."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from faena.cli.output import counted, instant, plain, table
from faena.cli.status_reading import WINDOW_MIN, QueueStatus, Status, lasting
from faena.telemetry.snapshot import NodeSnapshot

_COLOURS: Final = {3: "bold red", 2: "yellow", 1: "yellow"}
_HEADS: Final = (
    *("queue", "ready", "oldest", "running", "delayed", "dead"),
    *("per min", "errors", "p95 wait", "p95 run", "workers", "holds"),
)
_SPARE: Final = ("p95 run", "p95 wait", "delayed", "holds", "workers")
_FRAME: Final = 12
"""Lines beside problems and queues."""
_LEAST: Final = 5


def draw(console: Console, status: Status) -> None:
    """One screen at a terminal, everything in a pipe."""
    room = _room(len(status.problems))
    _draw_problems(console, status, room)
    console.print()
    shown = status.queues[:room]
    rows = [_row(one) for one in shown]
    console.print(table(_HEADS, rows, spare=_SPARE, none="the app has no queue"))
    _say_more(console, len(status.queues) - len(shown), "quieter queue")
    console.print()
    for line in (_upstreams(status), _features(status), _workers(status)):
        console.print(Text(plain(line)))
    for node in status.snapshot.nodes:
        console.print(Text(plain(_node(node))))


def _room(problems: int) -> int:
    """Rows of queues and problems; no more than a terminal has lines."""
    if not sys.stdout.isatty():
        return sys.maxsize
    lines = shutil.get_terminal_size().lines - _FRAME - min(problems, _LEAST)
    return max(_LEAST, lines)


def _draw_problems(console: Console, status: Status, room: int) -> None:
    number = len(status.problems)
    head = f"{counted(number, 'problem')}" if number else "all is well"
    at = instant(status.snapshot.at)
    console.print(Text(f"{head}, {at}", style=_COLOURS[3] if number else "green"))
    shown = status.problems[: max(_LEAST, room // 2)]
    for one in shown:
        console.print(Text(plain(f"  {one.about}: {one.message}"), style=_COLOURS[one.severity]))
    _say_more(console, number - len(shown), "problem")


def _say_more(console: Console, number: int, noun: str) -> None:
    if number > 0:
        console.print(Text(f"  and {counted(number, noun)} more", style="dim"))


def _row(one: QueueStatus) -> Sequence[object]:
    now, lately = one.now, one.lately
    rate = lately.error_rate
    running = f"{now.counts['running']} of {now.slots}" if now.slots else now.counts["running"]
    return (
        one.queue,
        now.counts["ready"],
        lasting(now.oldest_us),
        running,
        now.counts["delayed"],
        now.counts["dead"],
        f"{one.per_minute:.1f}",
        None if rate is None else f"{rate:.1%}",
        _time(lately.wait.p95_us),
        _time(lately.run.p95_us),
        len(now.workers),
        ", ".join(hold.reason for hold in now.holds),
    )


def _time(us: float | None) -> str | None:
    if us is None:
        return None
    return f"{us / 1000:.0f}ms" if us < 1_000_000 else lasting(round(us))


def _upstreams(status: Status) -> str:
    views = status.snapshot.upstreams
    bad = sorted(one.name for one in views if one.state != "closed" or one.panic is not None)
    return _line("upstreams", len(views), "closed", bad)


def _features(status: Status) -> str:
    views = status.snapshot.features
    return _line(
        "features", len(views), "healthy", [one.name for one in views if not one.is_healthy]
    )


def _line(what: str, number: int, well: str, bad: Sequence[str]) -> str:
    if not number:
        return f"{what:<10} none"
    ill = f", not {', '.join(bad)}" if bad else ""
    return f"{what:<10} {number - len(bad)} of {number} {well}{ill}"


def _workers(status: Status) -> str:
    """Every process once, whatever queues it serves."""
    found = {one.name: one for queue in status.queues for one in queue.now.workers}
    hosts = {one.host for one in found.values() if one.host}
    running = sum(queue.now.counts["running"] for queue in status.queues)
    done = sum(queue.per_minute for queue in status.queues)
    where = f" on {counted(len(hosts), 'host')}" if hosts else ""
    return (
        f"{'workers':<10} {len(found)}{where}, {counted(running, 'job')} running, "
        f"{done:.1f} completed per minute in the last {WINDOW_MIN}"
    )


def _node(node: NodeSnapshot) -> str:
    if node.latency_ms is None:
        return f"{'broker':<10} {node.node} does not answer"
    memory = "" if node.memory_used is None else f", {_size(node.memory_used)} of memory used"
    most = f" of {_size(node.memory_max)}" if node.memory_max else ""
    return f"{'broker':<10} {node.node}, {node.latency_ms:.1f} ms{memory}{most}"


def _size(number: int) -> str:
    return f"{number / (1 << 20):.0f} MiB" if number < 1 << 30 else f"{number / (1 << 30):.1f} GiB"
