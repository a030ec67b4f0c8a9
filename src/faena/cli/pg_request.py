"""Commands on what tenants ask for: their archived rows, and the erasure of all they have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from faena.cli.argument import by, common, confirm, example, split, words
from faena.cli.output import Output, facts, table
from faena.cli.pg_session import find_pg, run

if TYPE_CHECKING:
    from faena.pg import ErasurePlan, ErasureView, RetrievalView


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

    async def work() -> RetrievalView:
        async with pg.app:
            found = await pg.retrievals.retrieve(name, tenant=tenant, start=start, end=end)
            while path is not None and found.state == "waiting":
                await asyncio.sleep(0.5)
                found = await pg.retrievals.look(found.id, tenant=tenant)
            if path is not None and found.state == "ready":
                await pg.retrievals.save(found.id, path, tenant=tenant)
            return found

    view = run(pg, work)
    rows = [(one, value) for one, value in view.to_dict().items() if value is not None]
    output.show(view, lambda console: console.print(facts(rows)))
    if view.state == "failed":
        raise click.exceptions.Exit(1)


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
        told = plan.to_dict()
        if status:
            told["requests"] = [one.to_dict() for one in known]
        output.show(told, lambda console: _draw(console, plan, known))
        return
    view = run(pg, ask)
    output.say(view.to_dict(), f"erasure {view.id} of {tenant} is {view.state}")


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
