"""Commands on the app's PostgreSQL: its migrations, and how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from faena.cli.argument import Commands, common, example, split, words
from faena.cli.output import Output, facts
from faena.cli.pg_partitions import partitions
from faena.cli.pg_session import find_pg, run

if TYPE_CHECKING:
    from faena.pg.migration import Step


@click.group(
    cls=Commands,
    epilog=example(
        "faena pg migrate shop.tasks:app --step pre",
        "faena pg status",
        "faena pg partitions",
    ),
)
def pg() -> None:
    """The PostgreSQL beside the broker: migrations, partitions.

    The app must have one: `pg = Postgres(app)`. Every command takes --json.
    """


pg.add_command(partitions)


@pg.command(
    epilog=example("faena pg migrate shop.tasks:app --step pre", "faena pg migrate --check")
)
@words("[MODULE:APP]")
@click.option(
    "--step",
    type=click.Choice(["pre", "post"]),
    help="Only what is needed before new programs start, or what waits for the end of old ones.",
)
@click.option("--check", is_flag=True, help="Apply nothing; exit with 1 if something is missing.")
@common
@click.pass_obj
def migrate(output: Output, words: tuple[str, ...], step: Step | None, check: bool) -> None:
    """Apply the migrations of this release that the database has not."""
    from faena.pg import migration  # noqa: PLC0415 - needs psycopg

    target, _ = split(words)
    found = find_pg(target)
    if check:
        missing = run(found, lambda: migration.pending(found))
        names = [str(one) for one in missing if step in {None, one.step}]
        output.say({"pending": names}, f"pending: {', '.join(names)}" if names else "all applied")
        if names:
            raise click.exceptions.Exit(1)
        return
    done = run(found, lambda: migration.migrate(found, step))
    applied = [str(one) for one in done]
    output.say(
        {"applied": applied}, f"applied: {', '.join(applied)}" if applied else "nothing to apply"
    )


@pg.command(epilog=example("faena pg status shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def status(output: Output, words: tuple[str, ...]) -> None:
    """Show the server's version and the migrations that are missing; fails without a server."""
    from faena.pg import migration  # noqa: PLC0415 - needs psycopg

    target, _ = split(words)
    found = find_pg(target)

    async def work() -> dict[str, Any]:
        async with found.transaction("status") as connection:
            row = await (
                await connection.execute(
                    "SELECT current_setting('server_version'), current_database()"
                )
            ).fetchone()
        version, database = row or ("unknown", "unknown")
        missing = [str(one) for one in await migration.pending(found)]
        return {"server_version": version, "database": database, "pending": missing}

    told = run(found, work)

    def draw(console: Console) -> None:
        pending = ", ".join(told["pending"]) or "none"
        rows = [("server", f"PostgreSQL {told['server_version']}"), ("database", told["database"])]
        console.print(facts([*rows, ("pending", pending)]))

    output.show(told, draw)
