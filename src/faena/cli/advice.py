"""`faena advice`: how many slots queues need. `faena what-if`: what it would be with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
from rich.console import Console
from rich.text import Text

from faena.cli import session
from faena.cli.app_lookup import app_and_queue, find_app, find_queue
from faena.cli.argument import DURATION, RATE, Whole, common, example, split, words
from faena.cli.json_output import iso, seconds
from faena.cli.output import Output, plain, table
from faena.cli.progress import progress
from faena.limits import Limit
from faena.telemetry.advice.queue_advice import QueueAdvice, TaskAdvice
from faena.telemetry.advice.replay import Replay, WhatIf
from faena.telemetry.advice.wording import duration, rate
from faena.telemetry.statistics import Timing

_HEADS: Final = (
    *("queue", "task", "status", "rate", "run", "wait p95", "slots", "in use"),
    *("right", "for objective"),
)
_BAR: Final = 40
_LEVELS: Final = " ▁▂▃▄▅▆▇█"
_WINDOW: Final = "1h"


@click.command(epilog=example("faena advice shop.tasks:app", "faena advice mail --window 24h"))
@words("[MODULE:APP] [QUEUE]")
@click.option(
    "--window",
    type=DURATION,
    default=_WINDOW,
    show_default=True,
    help="What counts: 1m to 30d.",
)
@common
@click.pass_obj
def advice(output: Output, words: tuple[str, ...], window: str) -> None:
    """Tell how many slots queues need, by what came in the last --window."""
    target, names = split(words, rest="QUEUE")
    app = find_app(target)
    if len(names) > 1:
        raise click.UsageError(f"unexpected extra argument {names[1]!r}")
    queue = find_queue(app, names[0]) if names else None
    found = session.run(app, lambda: app.advice(queue, window=window))
    output.list(map(_told, found), lambda console: _draw(console, found))


def _told(one: QueueAdvice | TaskAdvice) -> dict[str, Any]:
    told = one.to_dict() | {"wait": _timing(one.wait), "run": _timing(one.run)}
    if isinstance(one, QueueAdvice):
        told |= {"since": iso(one.since), "until": iso(one.until)}
        told["tasks"] = [_told(task) for task in one.tasks]
    return told


def _timing(timing: Timing) -> dict[str, Any]:
    names = ("mean", "p50", "p95", "p99", "longest")
    return {"count": timing.count} | {
        f"{name}_s": seconds(getattr(timing, f"{name}_us")) for name in names
    }


def _draw(console: Console, found: Sequence[QueueAdvice]) -> None:
    rows = [row for one in found for row in _rows(one)]
    spare = ("run", "rate", "for objective")
    console.print(table(_HEADS, rows, spare=spare, none="the app declares no queue"))
    for one in found:
        console.print(Text(f"{one.queue}:", style="bold"))
        for sentence in one.words:
            console.print(Text(plain(f"  {sentence}")))


def _rows(one: QueueAdvice) -> list[tuple[object, ...]]:
    whole = (one.queue, "", one.status, *_numbers(one, str(one.slots)))
    goal = "-" if one.objective_slots is None else str(one.objective_slots)
    return [
        (*whole, goal),
        *((one.queue, task.task, "", *_numbers(task, ""), "") for task in one.tasks),
    ]


def _numbers(one: QueueAdvice | TaskAdvice, slots: str) -> tuple[str, ...]:
    late_us, used = one.wait.p95_us, one.utilization
    return (
        rate(one.arrival_rate),
        duration(one.service_s),
        "-" if late_us is None else duration(late_us / 1e6),
        slots,
        "-" if used is None else f"{used:.0%}",
        "-" if one.recommended_slots is None else str(one.recommended_slots),
    )


# -- what if ------------------------------------------------------------------------------------


def _weights(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> dict[str, float] | None:
    found: dict[str, float] = {}
    for one in given:
        name, _, number = one.rpartition("=")
        try:
            found[name or ""] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise click.BadParameter(f"it must be TENANT=NUMBER such as acme=3, got {one!r}")
    return found or None


@click.command(
    name="what-if",
    epilog=example(
        "faena what-if shop.tasks:app mail --slots 8",
        "faena what-if mail --slots 20 --limit 100/min --window 24h",
        "faena what-if mail --weight acme=3",
    ),
)
@words("[MODULE:APP] QUEUE")
@click.option("--slots", type=Whole(1, 1_000_000), help="Slots of all workers together.")
@click.option("--limit", "limits", type=RATE, multiple=True, help="Limits instead of the queue's.")
@click.option("--no-limits", is_flag=True, help="Without the queue's limits.")
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="TENANT=N",
    callback=_weights,
    help="Another weight of a tenant, when tenants take turns.",
)
@click.option(
    "--window", type=DURATION, default=_WINDOW, show_default=True, help="What to replay: 1m to 1d."
)
@common
@click.pass_obj
def what_if(
    output: Output,
    words: tuple[str, ...],
    *,
    slots: int | None,
    limits: tuple[Limit, ...],
    no_limits: bool,
    weights: Mapping[str, float] | None,
    window: str,
) -> None:
    """Replay what came in the last --window, as it is and with other slots, limits or weights.

    Nothing is changed. Without --limit and --no-limits, the queue's limits apply.
    """
    app, queue, _ = app_and_queue(words)
    if limits and no_limits:
        raise click.UsageError("--limit and --no-limits must not be given together")
    other = None if not (limits or no_limits) else list(limits)
    if slots is None and other is None and weights is None:
        raise click.UsageError("one of --slots, --limit, --no-limits or --weight must be given")
    with progress(output, f"replaying {queue.name}") as advance:
        done = 0

        def report(number: int) -> None:
            nonlocal done
            advance(number - done)
            done = number

        found = session.run(
            app,
            lambda: app.what_if(
                queue, slots=slots, limits=other, weights=weights, window=window, report=report
            ),
        )
    output.show(_replayed(found), lambda console: _draw_replay(console, found))


def _replayed(found: WhatIf) -> dict[str, Any]:
    told = found.to_dict()
    return told | {
        "since": iso(found.since),
        "until": iso(found.until),
        "measured": _timing(found.measured),
    }


def _draw_replay(console: Console, found: WhatIf) -> None:
    for sentence in found.words:
        console.print(Text(plain(sentence)))
    if found.before is None or found.after is None:
        return
    console.print()
    _bars(console, found.before, found.after)
    console.print()
    _course(console, found.before, found.after)
    _by_tenant(console, found.before, found.after)


def _bars(console: Console, before: Replay, after: Replay) -> None:
    """Waits and slots in use, each pair to the same scale."""
    longest = max(before.wait_p99_s, after.wait_p99_s)
    for name in ("p50", "p95", "p99"):
        for when, one in (("now", before), ("then", after)):
            wait_s = getattr(one, f"wait_{name}_s")
            head = f"wait {name}" if one is before else ""
            _bar(console, head, when, wait_s / longest if longest else 0.0, duration(wait_s))
    for when, one in (("now", before), ("then", after)):
        head = "in use" if one is before else ""
        used = f"{one.utilization:.0%} of {one.slots:,}"
        _bar(console, head, when, min(1.0, one.utilization), used)


def _bar(console: Console, head: str, when: str, part: float, told: str) -> None:
    style = "red" if when == "now" else "green"
    line = Text(f"{head:<9} {when:<5}")
    line.append(f"{'█' * round(part * _BAR):<{_BAR}}", style=style)
    console.print(line.append(f" {told}"))


def _course(console: Console, before: Replay, after: Replay) -> None:
    """How p95 of waits went through the window, both to the same scale."""
    most = max(*before.wait_p95_course, *after.wait_p95_course)
    for when, one in (("now", before), ("then", after)):
        levels = (
            _LEVELS[round(wait_s / most * (len(_LEVELS) - 1))] if most else " "
            for wait_s in one.wait_p95_course
        )
        head = "course" if one is before else ""
        console.print(Text(f"{head:<9} {when:<5}{''.join(levels)}"))
    console.print(Text(f"{'':<15}p95 of waits through the window, up to {duration(most)}"))


def _by_tenant(console: Console, before: Replay, after: Replay) -> None:
    if not after.tenants:
        return
    rows = [
        (name or "(all others)", duration(before.tenants.get(name)), duration(wait_s))
        for name, wait_s in after.tenants.items()
    ]
    console.print()
    console.print(table(("tenant", "wait p95 now", "then"), rows))
