"""Commands on roll-ups: list, run, back-fill."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console

from faena.cli.argument import ListedCommands, by, common, example, split, words
from faena.cli.output import Output, counted, table
from faena.cli.pg_session import Asked, find_pg, run

if TYPE_CHECKING:
    from faena.pg import Postgres, RollupProgress, RollupView

_HEADS: Final = ("roll-up", "of", "every", "rows", "first", "last", "back-fill", "problems")
_SPARE: Final = ("of", "rows")
_DAY: Final = click.DateTime(["%Y-%m-%d"])


@click.group(
    cls=ListedCommands,
    epilog=example(
        "faena pg rollup shop.tasks:app",
        "faena pg rollup run jobs_per_day --day 2025-03-09",
        "faena pg rollup backfill jobs_per_day --first 2025-01-01 --last 2025-03-09",
    ),
)
def rollup() -> None:
    """List roll-ups, compute a period, or all periods of a range.

    MODULE:APP alone lists them; every command takes --json.
    """


@rollup.command("list", epilog=example("faena pg rollup list shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def list_(output: Output, words: tuple[str, ...]) -> None:
    """List the declared roll-ups: which periods they have, and what is wrong."""
    target, _ = split(words)
    pg = find_pg(target)
    found = run(pg, pg.rollups)

    def draw(console: Console) -> None:
        rows = [_row(view) for view in found]
        console.print(table(_HEADS, rows, spare=_SPARE, text="problems", none="no roll-up"))

    output.list(found, draw)


@rollup.command(
    "run",
    epilog=example("faena pg rollup run", "faena pg rollup run jobs_per_day --day 2025-03-09"),
)
@words("[MODULE:APP] [ROLL-UP]")
@click.option("--day", type=_DAY, help="A day of the period.  [default: recent periods]")
@by
@common
@click.pass_obj
def run_(output: Output, words: tuple[str, ...], day: datetime | None, by: str) -> None:
    """Compute periods anew: recent ones of all roll-ups or of one, or the one of a day.

    Exit with 1 if a roll-up is refused.
    """
    target, names = split(words, rest="ROLL-UP")
    pg = find_pg(target)
    if len(names) > 1:
        raise click.UsageError(f"unexpected extra argument {names[1]!r}")
    if day is not None and not names:
        raise click.UsageError("ROLL-UP must be given with --day")
    if not names:
        _run_all(output, pg, by)
        return
    found = pg.declared_rollup(names[0])

    async def work() -> list[str]:
        done = await found.run_recent() if day is None else [await found.run(day.date())]
        return [str(one.start) for one in done]

    days = run(pg, work, Asked(by, "rollup run", f"{found.name} {day.date() if day else ''}"))
    output.say({"ran": {found.name: days}}, f"{found.name}: {', '.join(days) or 'sealed'}")


def _run_all(output: Output, pg: Postgres, by: str) -> None:
    done = run(pg, pg.run_rollups, Asked(by, "rollup run"))
    lines = [f"{name}: {', '.join(ran) or 'sealed'}" for name, ran in done.ran.items()]
    lines += [f"{name}: {'; '.join(why)}" for name, why in done.problems.items()]
    output.say(done, "\n".join(lines) or "no roll-up")
    if done.problems:
        raise click.exceptions.Exit(1)


@rollup.command(
    epilog=example("faena pg rollup backfill jobs_per_day --first 2025-01-01 --last 2025-03-09")
)
@words("[MODULE:APP] ROLL-UP")
@click.option("--first", type=_DAY, required=True, help="A day of the first period.")
@click.option("--last", type=_DAY, required=True, help="A day of the last period.")
@by
@common
@click.pass_obj
def backfill(
    output: Output, words: tuple[str, ...], first: datetime, last: datetime, by: str
) -> None:
    """Compute all periods of a range; run it again after an interruption: it goes on."""
    target, (name,) = split(words, "ROLL-UP")
    pg = find_pg(target)
    found = pg.declared_rollup(name)
    asked = Asked(by, "rollup backfill", f"{found.name} {first.date()} {last.date()}")
    done = run(pg, lambda: found.backfill(first.date(), last.date(), _tell), asked)
    output.say(
        {"name": found.name, "done": done.done, "total": done.total},
        f"{found.name}: {counted(done.done, 'period')}",
    )


@rollup.command(epilog=example("faena pg rollup seal jobs_per_day --before 2025-03-10"))
@words("[MODULE:APP] ROLL-UP")
@click.option(
    "--before", type=_DAY, required=True, help="Periods that begin before this day are sealed."
)
@by
@common
@click.pass_obj
def seal(output: Output, words: tuple[str, ...], before: datetime, by: str) -> None:
    """Never compute old periods again; a seal is only moved forwards."""
    target, (name,) = split(words, "ROLL-UP")
    pg = find_pg(target)
    found = pg.declared_rollup(name)

    async def work() -> RollupView:
        await found.seal(before.date())
        return await found.view()

    sealed = run(pg, work, Asked(by, "rollup seal", f"{name} {before.date()}")).sealed_before
    output.say(
        {"name": found.name, "sealed_before": str(sealed)}, f"{found.name}: sealed before {sealed}"
    )


def _tell(progress: RollupProgress) -> None:
    click.echo(f"{progress.period}: {progress.done} of {progress.total}", err=True)


def _row(view: RollupView) -> tuple[object, ...]:
    under_way = view.backfill and f"{view.backfill.done} of {view.backfill.total}"
    return (
        view.name,
        view.of,
        view.every,
        view.rows,
        view.first,
        view.last,
        under_way,
        "; ".join(view.problems),
    )
