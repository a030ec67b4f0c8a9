"""Commands on retention: what waits, run it, and list, verify and restore archives."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from faena.cli.argument import MOMENT, ListedCommands, by, common, confirm, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, counted, table
from faena.cli.pg_session import Asked, find_pg, run

if TYPE_CHECKING:
    from faena.pg import LeavingView, Postgres, RetentionView
    from faena.pg.archive.archiver import Progress
    from faena.pg.archive.run import Archived

_POLICIES: Final = ("table", "keep", "legal", "then", "cutoff", "waiting", "archived", "problems")
_LEAVING: Final = ("table", "partition or period", "then", "rows")
_OBJECTS: Final = ("id", "tenant", "from", "to", "rows", "bytes", "state", "key")


class _Policies(ListedCommands):
    """Policies are looked at more often than objects."""

    usual = "status"


@click.group(
    cls=_Policies,
    epilog=example(
        "faena pg archive shop.tasks:app",
        "faena pg archive run --dry-run",
        "faena pg archive list jobs --tenant org-7",
        "faena pg archive restore jobs --into jobs_2023 --since 2023-01-01",
    ),
)
def archive() -> None:
    """Retention of old rows: what waits, run it now; list, verify and restore archives.

    MODULE:APP alone shows the policies; every command takes --json.
    """


@archive.command(epilog=example("faena pg archive status shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def status(output: Output, words: tuple[str, ...]) -> None:
    """Show each policy: what waits for the next run, what was archived, what is wrong."""
    target, _ = split(words)
    pg = find_pg(target)
    views = run(pg, pg.retention_views)
    output.list(views, lambda console: _draw(console, views))


@archive.command("run", epilog=example("faena pg archive run", "faena pg archive run jobs"))
@words("[MODULE:APP] [TABLE]...")
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would leave.")
@by
@common
@click.pass_obj
def run_(output: Output, words: tuple[str, ...], dry_run: bool, by: str) -> None:
    """Move old rows now, as the daily job does; exit with 1 if a table is refused."""
    target, names = split(words, rest="TABLE")
    pg = find_pg(target)
    chosen = [pg.retention(name) for name in names]
    if dry_run:
        _preview(output, pg, [str(one) for one in chosen])
        return

    async def work() -> list[Any]:
        if not names:
            return await pg.archive(report=_tell)
        return [one for name in names for one in await pg.archive(name, report=_tell)]

    done = run(pg, work, Asked(by, "archive run", " ".join(names)))
    lines = [f"{one.table}: {one.problem or _moved(one)}" for one in done]
    output.say({"items": [document(one) for one in done]}, "\n".join(lines) or "no policy")
    if any(one.problem for one in done):
        raise click.exceptions.Exit(1)


def _preview(output: Output, pg: Postgres, names: list[str]) -> None:
    """What the next run would move, by partition or period."""

    async def look() -> list[tuple[RetentionView, list[LeavingView]]]:
        views = [one for one in await pg.retention_views() if not names or one.table in names]
        return [(one, [] if one.problems else await pg.leaving(one.table)) for one in views]

    found = run(pg, look)
    told = [{**document(one), "leaving": [document(each) for each in some]} for one, some in found]

    def draw(console: Console) -> None:
        rows = [(each.table, each.name, each.then, f"about {counted(each.rows, 'row')}")
                for _, some in found for each in some]  # fmt: skip
        console.print(table(_LEAVING, rows, none="nothing leaves now"))
        for one, _ in found:
            for problem in one.problems:
                console.print(f"{one.table}: {problem}", markup=False, highlight=False)

    output.list(told, draw)
    if any(one.problems for one, _ in found):
        raise click.exceptions.Exit(1)


@archive.command("list", epilog=example("faena pg archive list jobs --tenant org-7"))
@words("[MODULE:APP] TABLE")
@click.option("--tenant", help="Only objects of this tenant.")
@click.option("--since", type=MOMENT, help="Only objects with rows from then on.")
@click.option("--until", type=MOMENT, help="Only objects with rows before.")
@common
@click.pass_obj
def list_(
    output: Output,
    words: tuple[str, ...],
    tenant: str | None,
    since: datetime | None,
    until: datetime | None,
) -> None:
    """List the objects that hold rows of a table."""
    target, (name,) = split(words, "TABLE")
    pg = find_pg(target)
    found = run(pg, lambda: pg.archives(name, tenant=tenant, since=since, until=until))

    def draw(console: Console) -> None:
        rows = [
            (one.id, one.tenant, f"{one.first_at:%Y-%m-%d %H:%M}", f"{one.last_at:%Y-%m-%d %H:%M}",
             one.rows, one.size, one.state, one.key)
            for one in found
        ]  # fmt: skip
        console.print(table(_OBJECTS, rows, spare=("id", "bytes"), text="key", none="no archive"))

    output.list(found, draw)


@archive.command(epilog=example("faena pg archive verify jobs"))
@words("[MODULE:APP] TABLE")
@click.option("--tenant", help="Only objects of this tenant.")
@common
@click.pass_obj
def verify(output: Output, words: tuple[str, ...], tenant: str | None) -> None:
    """Read all objects of a table back and compare them; exit with 1 if one is damaged."""
    target, (name,) = split(words, "TABLE")
    pg = find_pg(target)
    found = run(pg, lambda: pg.verify_archives(name, tenant=tenant))
    wrong = f", {len(found.problems)} damaged or missing" if found.problems else ""
    read = f"{counted(found.objects, 'object')} with {counted(found.rows, 'row')} read back"
    lines = [f"{read}{wrong}"]
    lines += [*found.problems, *(f"unknown file {one}" for one in found.unknown)]
    output.say(found, "\n".join(lines))
    if found.problems:
        raise click.exceptions.Exit(1)


@archive.command(epilog=example("faena pg archive restore jobs --into jobs_of_2023 --tenant org-7"))
@words("[MODULE:APP] TABLE")
@click.option("--into", help="Another table with the same columns.  [default: the table itself]")
@click.option("--tenant", help="Only objects of this tenant.")
@click.option("--since", type=MOMENT, help="Only objects with rows from then on.")
@click.option("--until", type=MOMENT, help="Only objects with rows before.")
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be restored.")
@by
@common
@click.pass_obj
def restore(
    output: Output,
    words: tuple[str, ...],
    into: str | None,
    tenant: str | None,
    since: datetime | None,
    until: datetime | None,
    dry_run: bool,
    by: str,
) -> None:
    """Bring rows back, in whole objects; those that are there already are left as they are."""
    target, (name,) = split(words, "TABLE")
    pg = find_pg(target)
    if dry_run:
        some = run(pg, lambda: pg.archives(name, tenant=tenant, since=since, until=until))
        rows = sum(one.rows for one in some)
        told = f"{counted(len(some), 'object')} with {counted(rows, 'row')} would be restored"
        output.say({"objects": len(some), "rows": rows}, told)
        return
    done = run(
        pg,
        lambda: pg.restore(name, into=into, tenant=tenant, since=since, until=until),
        Asked(by, "archive restore", f"{name} into {into or name}"),
    )
    told = f"{counted(done.rows, 'row')} restored into {done.table}, {done.skipped} were there"
    output.say(done, told)


@archive.command(epilog=example("faena pg archive lower ratings --to 5y --yes"))
@words("[MODULE:APP] TABLE")
@click.option("--to", help="The least time that rows are kept.  [default: no such time]")
@click.option("--yes", is_flag=True, help="Do not ask.")
@by
@common
@click.pass_obj
def lower(output: Output, words: tuple[str, ...], to: str | None, yes: bool, by: str) -> None:
    """Lower the recorded protection of a table, so that a shorter policy may delete its rows."""
    target, (name,) = split(words, "TABLE")
    pg = find_pg(target)
    confirm(f"May rows of {name} be deleted after {to or 'any time'}?", yes=yes)
    asked = Asked(by, "archive lower", f"{name} to {to or 'no time'}")
    found = run(pg, lambda: pg.lower_protection(name, to), asked)
    output.say({"table": found, "legal": to}, f"{found} is protected for {to or 'no time'}")


def _moved(one: Archived) -> str:
    return f"{counted(one.rows, 'row')} moved out, {counted(one.objects, 'object')} stored"


def _tell(progress: Progress) -> None:
    click.echo(
        f"{progress.table} {progress.period}: {progress.step}, "
        f"{counted(progress.step_rows, 'row')}, {counted(progress.step_objects, 'object')}; "
        f"{counted(progress.rows, 'row')} so far",
        err=True,
    )


def _draw(console: Console, views: list[RetentionView]) -> None:
    rows = [
        (
            one.table,
            one.keep,
            one.legal,
            one.then,
            one.cutoff and f"{one.cutoff:%Y-%m-%d}",
            len(one.waiting),
            one.rows,
            "; ".join([*one.problems, *_problem(one)]),
        )
        for one in views
    ]
    console.print(
        table(_POLICIES, rows, spare=("cutoff", "legal"), text="problems", none="no policy")
    )


def _problem(view: RetentionView) -> list[str]:
    last = view.last_run
    return [last.problem] if last is not None and last.problem is not None else []
