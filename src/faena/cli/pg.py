"""Commands on the app's PostgreSQL: its migrations, and how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from faena.cli.argument import Commands, Whole, common, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, facts
from faena.cli.pg_archive import archive
from faena.cli.pg_history import history
from faena.cli.pg_partitions import partitions
from faena.cli.pg_request import erase, retrieve
from faena.cli.pg_rollup import rollup
from faena.cli.pg_session import find_pg, run

if TYPE_CHECKING:
    from faena.pg import Postgres
    from faena.pg.migration import Step


@click.group(
    cls=Commands,
    epilog=example(
        "faena pg migrate shop.tasks:app --step pre",
        "faena pg status",
        "faena pg outbox",
        "faena pg partitions",
        "faena pg archive",
        "faena pg history status",
        "faena pg erase org-7 --dry-run",
    ),
)
def pg() -> None:
    """The PostgreSQL beside the broker: migrations, outbox, partitions, archives and more.

    The app must have one: `pg = Postgres(app)`. Every command takes --json.
    """


pg.add_command(partitions)
pg.add_command(archive)
pg.add_command(history)
pg.add_command(rollup)
pg.add_command(erase)
archive.add_command(retrieve)


@pg.command(
    epilog=example("faena pg migrate shop.tasks:app --step pre", "faena pg migrate --check")
)
@words("[MODULE:APP]")
@click.option(
    "--step",
    type=click.Choice(["pre", "post"]),
    help="Only what is needed before new programs start, or what waits for the end of old ones.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Apply nothing; exit with 1 if something is missing, or the schema is another.",
)
@common
@click.pass_obj
def migrate(output: Output, words: tuple[str, ...], step: Step | None, check: bool) -> None:
    """Apply the migrations of this release that the database has not."""
    from faena.pg import migration  # noqa: PLC0415 - needs psycopg

    target, _ = split(words)
    found = find_pg(target)
    if check:
        _check(output, found, step)
        return
    done = run(found, lambda: migration.migrate(found, step))
    applied = [str(one) for one in done]
    output.say(
        {"applied": applied}, f"applied: {', '.join(applied)}" if applied else "nothing to apply"
    )


def _check(output: Output, found: Postgres, step: Step | None) -> None:
    """What is missing, and what somebody has changed by hand."""
    from faena.pg.drift import Difference, drift  # noqa: PLC0415 - needs psycopg
    from faena.pg.migration import pending  # noqa: PLC0415

    async def work() -> tuple[list[str], list[Difference]]:
        missing = [str(one) for one in await pending(found) if step in {None, one.step}]
        return missing, await drift(found)

    names, differences = run(found, work)
    lines = [f"pending: {', '.join(names)}"] if names else []
    lines += [f"the schema is not what its migrations make: {one}" for one in differences]
    told = [one.to_dict() for one in differences]
    output.say({"pending": names, "drift": told}, "\n".join(lines or ["all applied"]))
    if names or differences:
        raise click.exceptions.Exit(1)


@pg.command(
    epilog=example("faena pg status shop.tasks:app", "faena pg status --processes 8 --cores 4")
)
@words("[MODULE:APP]")
@click.option(
    "--processes",
    type=Whole(1, 10_000),
    default=1,
    show_default=True,
    help="Worker processes that the advice on connections is for.",
)
@click.option("--cores", type=Whole(1, 10_000), help="Cores of the PostgreSQL server.")
@common
@click.pass_obj
def status(output: Output, words: tuple[str, ...], processes: int, cores: int | None) -> None:
    """Show version, migrations and connections, with advice; fails without a server."""
    from faena.pg import direct, migration, sizing  # noqa: PLC0415 - needs psycopg

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
        used = await sizing.connections(found, processes, cores)
        past = await direct.direct_view(found)
        replica = await found.replica.view() if found.replica.url else None
        return {
            "server_version": version,
            "database": database,
            "pending": missing,
            "connections": document(used),
            "direct": None if past is None else document(past),
            "replica": None if replica is None else document(replica),
        }

    told = run(found, work)
    output.show(told, lambda console: console.print(facts(_status_rows(told))))


def _status_rows(told: dict[str, Any]) -> list[tuple[str, object]]:
    from faena.pg.sizing import processes  # noqa: PLC0415 - needs psycopg

    used, past, replica = told["connections"], told["direct"], told["replica"]
    in_use = f"{used['in_use']} of {used['max_connections']}, {used['own']} by faena"
    rows: list[tuple[str, object]] = [
        ("server", f"PostgreSQL {told['server_version']}"),
        ("database", told["database"]),
        ("pending", ", ".join(told["pending"]) or "none"),
        ("connections", in_use),
        ("pool", f"{used['pool']} x {processes(used['processes'])}"),
        ("pooler", "in between" if used["is_pooled"] else "none"),
    ]
    if past is not None:
        rows.append(("direct_url", past["reason"] or "works"))
    if replica is not None:
        rows.append(("replica", replica["reason"] or f"{replica['lag_s']} s behind"))
    return [*rows, *(("advice", one) for one in used["advice"])]


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
