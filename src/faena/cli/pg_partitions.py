"""Commands on partitions: list, create, detach, attach; convert a plain table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from faena.cli.argument import (
    DURATION,
    ListedCommands,
    Whole,
    by,
    common,
    confirm,
    example,
    split,
    whoever,
    words,
)
from faena.cli.output import Output, counted, facts, table
from faena.cli.pg_session import Asked, find_pg, run

if TYPE_CHECKING:
    from faena.pg import Conversion, Postgres, TableView
    from faena.pg.conversion.conversion import ConversionView
    from faena.pg.conversion.copying import Progress
    from faena.pg.partition.interval import Every

_HEADS: Final = ("table", "every", "partitions", "rows", "size", "runway", "problems")
_SPARE: Final = ("size", "rows")


@click.group(
    cls=ListedCommands,
    epilog=example(
        "faena pg partitions shop.tasks:app",
        "faena pg partitions ensure",
        "faena pg partitions convert locations --by recorded_at --every day",
        "faena pg partitions swap locations",
    ),
)
def partitions() -> None:
    """List partitions, create them ahead, detach and attach them; convert plain tables.

    MODULE:APP alone lists them; every command takes --json.
    """


@partitions.command("list", epilog=example("faena pg partitions list shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def list_(output: Output, words: tuple[str, ...]) -> None:
    """List the declared tables: until when they have partitions, and what is wrong."""
    target, _ = split(words)
    pg = find_pg(target)
    found = run(pg, pg.partitions)

    def draw(console: Console) -> None:
        rows = [_row(view) for view in found]
        console.print(table(_HEADS, rows, spare=_SPARE, text="problems", none="no table"))

    output.list(found, draw)


@partitions.command(epilog=example("faena pg partitions ensure shop.tasks:app"))
@words("[MODULE:APP]")
@by
@common
@click.pass_obj
def ensure(output: Output, words: tuple[str, ...], by: str) -> None:
    """Create the partitions that are missing now and ahead; exit with 1 if a table is refused."""
    target, _ = split(words)
    pg = find_pg(target)
    done = run(pg, pg.ensure_partitions, Asked(by, "partitions ensure"))
    lines = [f"{name}: {', '.join(made) or 'nothing missing'}" for name, made in done.made.items()]
    lines += [f"{name}: {'; '.join(found)}" for name, found in done.problems.items()]
    output.say(done, "\n".join(lines) or "no table")
    if done.problems:
        raise click.exceptions.Exit(1)


@partitions.command(epilog=example("faena pg partitions detach locations locations_20250101"))
@words("[MODULE:APP] TABLE PARTITION")
@by
@common
@click.pass_obj
def detach(output: Output, words: tuple[str, ...], by: str) -> None:
    """Take a partition out, beside readers and writers; its rows stay in a table."""
    target, (name, partition) = split(words, "TABLE", "PARTITION")
    pg = find_pg(target)
    asked = Asked(by, "partitions detach", partition)
    run(pg, lambda: pg.partitioned_table(name).detach(partition), asked)
    output.say({"table": name, "detached": partition}, f"{partition} is detached")


@partitions.command(epilog=example("faena pg partitions attach locations locations_20250101"))
@words("[MODULE:APP] TABLE PARTITION")
@click.option(
    "--day",
    type=click.DateTime(["%Y-%m-%d"]),
    help="A day of its period.  [default: the one in its name]",
)
@by
@common
@click.pass_obj
def attach(output: Output, words: tuple[str, ...], day: datetime | None, by: str) -> None:
    """Put a detached partition back; its rows are checked before."""
    target, (name, partition) = split(words, "TABLE", "PARTITION")
    pg = find_pg(target)
    found = pg.partitioned_table(name)
    asked = Asked(by, "partitions attach", partition)
    period = run(pg, lambda: found.attach(partition, day=day.date() if day else None), asked)
    output.say(
        {"table": name, "attached": partition, "start": period.start, "end": period.end},
        f"{partition} is attached: {period}",
    )


@partitions.command(
    epilog=example(
        "faena pg partitions convert locations",
        "faena pg partitions convert visits --by began_at --every week --tenant organization_id",
    )
)
@words("[MODULE:APP] TABLE")
@click.option("--by", help="The column that decides the partition.  [default: as declared]")
@click.option("--every", type=click.Choice(["month", "week", "day"]), help="One partition's time.")
@click.option("--ahead", type=Whole(1, 1000), help="Periods after the current one.")
@click.option("--tenant", help="The column of the tenant; with it there is an index.")
@common
@click.pass_obj
def convert(
    output: Output,
    words: tuple[str, ...],
    by: str | None,
    every: Every | None,
    ahead: int | None,
    tenant: str | None,
) -> None:
    """Copy a plain table into a partitioned twin while it is used; then swap them.

    Run it again after an interruption: it continues. Without --every, the app must declare the
    table with pg.partitioned.
    """
    target, (name,) = split(words, "TABLE")
    pg = find_pg(target)
    if every is None:
        pg.partitioned_table(name)
    conversion = pg.convert(name, by=by or "created_at", every=every, ahead=ahead, tenant=tenant)
    missing = _undeclared(pg, name, every)
    if missing:
        click.echo(missing, err=True)
    asked = Asked(whoever(), "partitions convert", name)
    _print(output, run(pg, lambda: conversion.run(_tell), asked), missing)


@partitions.command(epilog=example("faena pg partitions status locations"))
@words("[MODULE:APP] TABLE")
@common
@click.pass_obj
def status(output: Output, words: tuple[str, ...]) -> None:
    """Show how far a conversion is, and what comes next."""
    _change(output, words, lambda conversion: conversion.status())


@partitions.command(epilog=example("faena pg partitions swap locations"))
@words("[MODULE:APP] TABLE")
@click.option("--hold", type=DURATION, default="2s", show_default=True, help="Under the lock.")
@by
@common
@click.pass_obj
def swap(output: Output, words: tuple[str, ...], hold: str, by: str) -> None:
    """Give the partitioned twin the table's name; writes reach both tables, for a way back."""
    _change(output, words, lambda conversion: conversion.swap(hold=hold), (by, "swap"))


@partitions.command(epilog=example("faena pg partitions revert locations"))
@words("[MODULE:APP] TABLE")
@click.option("--hold", type=DURATION, default="2s", show_default=True, help="Under the lock.")
@by
@common
@click.pass_obj
def revert(output: Output, words: tuple[str, ...], hold: str, by: str) -> None:
    """Give the plain table its name again, with everything written since the swap."""
    _change(output, words, lambda conversion: conversion.revert(hold=hold), (by, "revert"))


@partitions.command(epilog=example("faena pg partitions finish locations --drop"))
@words("[MODULE:APP] TABLE")
@click.option("--drop", is_flag=True, help="Drop the plain table as well.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@by
@common
@click.pass_obj
def finish(output: Output, words: tuple[str, ...], drop: bool, yes: bool, by: str) -> None:
    """End the mirror after a swap: there is no way back then."""
    if drop:
        confirm("Drop the table as it was before the conversion?", yes=yes)
    what = "finish --drop" if drop else "finish"
    _change(output, words, lambda conversion: conversion.finish(drop=drop), (by, what))


@partitions.command(epilog=example("faena pg partitions cancel locations --yes"))
@words("[MODULE:APP] TABLE")
@click.option("--yes", is_flag=True, help="Do not ask.")
@by
@common
@click.pass_obj
def cancel(output: Output, words: tuple[str, ...], yes: bool, by: str) -> None:
    """Give a conversion up before its swap: the mirror ends and the twin is dropped."""
    pg, conversion, name = _find(words)
    confirm(f"Drop the partitioned twin of {name}?", yes=yes)
    run(pg, conversion.cancel, Asked(by, "partitions cancel", name))
    output.say({"table": name, "cancelled": True}, f"the conversion of {name} is cancelled")


def _find(words: tuple[str, ...]) -> tuple[Postgres, Conversion, str]:
    target, (name,) = split(words, "TABLE")
    pg = find_pg(target)
    return pg, pg.conversion(name), name


def _change(
    output: Output,
    words: tuple[str, ...],
    work: Callable[[Conversion], Awaitable[ConversionView]],
    change: tuple[str, str] | None = None,
) -> None:
    """`change`: who asks for it, and its command."""
    pg, conversion, name = _find(words)
    asked = None if change is None else Asked(change[0], f"partitions {change[1]}", name)
    _print(output, run(pg, lambda: work(conversion), asked), _undeclared(pg, name))


def _tell(progress: Progress) -> None:
    click.echo(f"{progress.step}: {_share(progress)}", err=True)


def _share(how_far: Progress | ConversionView) -> str:
    """The total is an estimate of the server, which has none of a table that it never analyzed."""
    share = f" of about {how_far.total}" if how_far.total else ""
    return f"{counted(how_far.copied, 'row')}{share}"


def _undeclared(pg: Postgres, name: str, every: str | None = None) -> str | None:
    """Nobody makes partitions of a table that the app does not declare."""
    if name in pg.partitioned_tables:
        return None
    interval = f'"{every}"' if every else "…"
    return (
        f'the app must declare pg.partitioned("{name}", every={interval}), else no partitions are '
        f"made after the ones ahead, and later rows are refused"
    )


def _print(output: Output, view: ConversionView, missing: str | None = None) -> None:
    rows: list[tuple[str, Any]] = [
        ("table", view.table),
        ("step", view.step),
        ("copied", _share(view)),
        ("verified", counted(view.verified, "period")),
        ("next", view.next),
        ("declare", missing),
    ]
    rows = [one for one in rows if one[0] != "declare" or missing]
    output.show(view, lambda console: console.print(facts(rows)))


def _rows(numbers: list[int | None]) -> str:
    """Estimates of the server, which has none of a partition that it never analyzed."""
    known = [one for one in numbers if one is not None]
    if len(known) == len(numbers):
        return str(sum(known))
    return f"{sum(known)} + unknown" if known else "unknown"


def _row(view: TableView) -> tuple[object, ...]:
    attached = [one for one in view.partitions if one.is_attached]
    rows = _rows([one.rows for one in attached])
    size = f"{sum(one.size for one in attached) / 2**20:.1f} MiB"
    runway = "" if view.runway is None else f"{view.runway:%Y-%m-%d}"
    return (
        view.table,
        view.every,
        len(attached),
        rows,
        size,
        runway,
        "; ".join(view.problems),
    )
