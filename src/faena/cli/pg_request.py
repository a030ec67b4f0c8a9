"""Commands on what tenants ask for: their archived rows, and the erasure of all they have."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from faena.cli.argument import by, common, confirm, example, split, words
from faena.cli.json_output import document
from faena.cli.output import Output, facts, table
from faena.cli.pg_session import find_pg, run

if TYPE_CHECKING:
    from faena.pg import ErasurePlan, ErasureView, Postgres, RetrievalView

_WAITING: Final = (
    "waiting for a worker that serves the queue archives: `faena worker --queues archives`"
)


@click.command(
    epilog=example(
        "faena pg archive retrieve jobs --tenant org-7 --from 2023-01-01 --to 2023-12-31",
        "faena pg archive retrieve jobs --tenant org-7 --from 2023-01-01 --to 2023-12-31 "
        "--output jobs.jsonl.gz",
    )
)
@words("[MODULE:APP] TABLE")
@click.option("--tenant", required=True, help="Whose rows.")
@click.option("--from", "start", required=True, help="The first day, or an instant.")
@click.option("--to", "end", required=True, help="The last day, or the first instant after it.")
@click.option(
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Wait for the file and write it here; a worker must run.",
)
@common
@click.pass_obj
def retrieve(
    output: Output, words: tuple[str, ...], tenant: str, start: str, end: str, path: Path | None
) -> None:
    """Collect a tenant's archived rows of a time into a file; exit with 1 if that fails."""
    target, (name,) = split(words, "TABLE")
    pg = find_pg(target)
    _check_place(path)

    async def work() -> RetrievalView:
        async with pg.app:
            found = await pg.retrievals.retrieve(name, tenant=tenant, start=start, end=end)
            if path is not None and found.state == "waiting":
                click.echo(_WAITING, err=True)
            while path is not None and found.state == "waiting":
                await asyncio.sleep(0.5)
                found = await pg.retrievals.look(found.id, tenant=tenant)
            if path is not None and found.state == "ready":
                await _save(pg, found.id, path, tenant)
            return found

    view = run(pg, work)
    rows = [(one, value) for one, value in view.to_dict().items() if value is not None]
    output.show(view, lambda console: console.print(facts(rows)))
    if view.state == "failed":
        raise click.exceptions.Exit(1)


def _check_place(path: Path | None) -> None:
    """Before anybody waits."""
    if path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise click.UsageError(
            f"--output must be a file in a directory that you can write to, got {path}"
        )


async def _save(pg: Postgres, request: str, path: Path, tenant: str) -> None:
    try:
        await pg.retrievals.save(request, path, tenant=tenant)
    except OSError as error:
        words = f"{path} cannot be written: {error.strerror or error}; the file is kept for a day"
        raise click.ClickException(words) from error


@click.command(
    epilog=example(
        "faena pg erase org-7 --dry-run",
        "faena pg erase org-7 --by ana --reason 'asked by letter of 3 May'",
        "faena pg erase org-7 --status",
    )
)
@words("[MODULE:APP] TENANT")
@by
@click.option("--reason", help="Why; recorded with the request.")
@click.option("--cancel-live", is_flag=True, help="Cancel live jobs, instead of refusing.")
@click.option("--dry-run", is_flag=True, help="Erase nothing; show what is held.")
@click.option("--status", is_flag=True, help="Show the tenant's requests, and what is left.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
@click.pass_obj
def erase(
    output: Output,
    words: tuple[str, ...],
    by: str,
    reason: str | None,
    cancel_live: bool,
    dry_run: bool,
    status: bool,
    yes: bool,
) -> None:
    """Erase everything that is held of a tenant, but what a law protects; a worker does it.

    --dry-run and --status count what is there now, in every place.
    """
    target, (tenant,) = split(words, "TENANT")
    pg = find_pg(target)
    if not (dry_run or status):
        if reason is None:
            raise click.UsageError("--reason must be given: it is recorded with the request")
        confirm(f"Erase all data of tenant {tenant}? Nobody can undo it.", yes=yes)

    async def look() -> tuple[ErasurePlan, list[ErasureView]]:
        async with pg.app:
            plan = await pg.erasures.plan(tenant)
            return plan, await pg.erasures.list(tenant=tenant) if status else []

    async def ask() -> ErasureView:
        async with pg.app:
            given: dict[str, Any] = {"by": by, "reason": reason or "", "cancel_live": cancel_live}
            return await pg.erasures.erase(tenant, **given)

    if dry_run or status:
        plan, known = run(pg, look)
        told = {**plan.to_dict(), **document(plan)}
        if status:
            told["requests"] = [document(one) for one in known]
        output.show(told, lambda console: _draw(console, plan, known))
        return
    view = run(pg, ask)
    output.say(document(view), f"erasure {view.id} of {tenant} is {view.state}")


def _draw(console: Console, plan: ErasurePlan, known: list[ErasureView]) -> None:
    rows: list[tuple[Any, ...]] = [(place, number, "", "") for place, number in plan.found.items()]
    rows += [
        (one.place, one.number, one.reason, f"{one.until:%Y-%m-%d}" if one.until else "")
        for one in plan.kept
    ]
    console.print(table(("place", "number", "kept", "until"), rows, text="kept", none="nothing"))
    if known:
        asked = [
            (f"{one.requested_at:%Y-%m-%d %H:%M}", one.by, one.state, one.step,
             sum(one.erased.values()), one.problem or one.reason)
            for one in known
        ]  # fmt: skip
        heads = ("requested", "by", "state", "step", "erased", "reason")
        console.print(table(heads, asked, text="reason", none="no request"))
