"""Commands on the app's PostgreSQL: its migrations, and how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from faena.cli.argument import Commands, common, example, split, words
from faena.cli.json_output import document
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
        "faena pg outbox",
        "faena pg partitions",
    ),
)
def pg() -> None:
    """The PostgreSQL beside the broker: migrations, outbox, partitions.

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


@pg.command(epilog=example("faena pg outbox shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def outbox(output: Output, words: tuple[str, ...]) -> None:
    """Show how many jobs are in the outbox, and how old the oldest is."""
    target, _ = split(words)
    found = find_pg(target)
    view = run(found, found.outbox.view)

    def draw(console: Console) -> None:
        queues = ", ".join(f"{queue} {number}" for queue, number in sorted(view.queues.items()))
        age = None if view.oldest_s is None else f"{view.oldest_s:.1f} s"
        rows: list[tuple[str, object]] = [
            ("pending", view.pending),
            ("by queue", queues or None),
            ("oldest", age),
            ("sent, not settled", view.sent),
            ("refused", view.refused),
        ]
        console.print(facts(rows))

    output.show(document(view), draw)


@pg.command(epilog=example("faena pg publish shop.tasks:app"))
@words("[MODULE:APP]")
@common
@click.pass_obj
def publish(output: Output, words: tuple[str, ...]) -> None:
    """Tell the database what the tasks of the app take, as workers do when they start."""
    target, _ = split(words)
    found = find_pg(target)
    number = run(found, found.outbox.publish)
    output.say({"published": number}, f"published {number} tasks")
