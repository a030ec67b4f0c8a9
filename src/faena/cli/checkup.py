"""Commands that look for problems: of a broker, and of the data stored on it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import click
from rich.console import Console
from rich.text import Text

from faena.app import Faena
from faena.cli import session
from faena.cli.app_lookup import app_and_queues, find_app
from faena.cli.argument import common, example, split, words
from faena.cli.output import Output, counted, plain, table
from faena.engine import Address
from faena.inspection.audit import Violation
from faena.inspection.audit import audit as audit_queue
from faena.inspection.doctor import Finding, visit
from faena.queue import Queue

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@click.command(
    epilog=example("faena doctor shop.tasks:app", "faena doctor --url valkey://localhost:6379/0")
)
@words("[MODULE:APP]")
@click.option("--url", help="Check this broker instead of an app's.")
@common
@click.pass_obj
def doctor(output: Output, words: tuple[str, ...], url: str | None) -> int:
    """Check a broker, and tell how to fix problems; exit code 1 if there are any."""
    if url and words:
        raise click.UsageError("give --url or MODULE:APP, not both")
    address = Address.parse(url, source="--url") if url else _environment(words)
    app = None if address else find_app(split(words)[0])
    findings = asyncio.run(_examine(app, address))
    output.list(findings, lambda console: _draw_findings(console, findings))
    failed = sum(finding.level == "fail" for finding in findings)
    if failed:
        raise click.ClickException(_broken(failed, len(findings)))
    return 0


def _broken(failed: int, points: int) -> str:
    verb = "needs" if failed == 1 else "need"
    return f"{failed} of {counted(points, 'check')} {verb} to be fixed, see above"


def _environment(words: Sequence[str]) -> Address | None:
    """The broker in the environment, if no app is given."""
    is_named = words or os.environ.get("FAENA_APP")
    return None if is_named else Address.from_environ(os.environ)


async def _examine(app: Faena | None, address: Address | None) -> list[Finding]:
    try:
        if address is not None:
            return await visit(address)
        if app is None:
            raise click.UsageError("give MODULE:APP or --url")
        return await app.doctor()
    finally:
        if app is not None:
            await app.close()


def _draw_findings(console: Console, findings: Sequence[Finding]) -> None:
    for finding in findings:
        mark = Text(f"{finding.level:<5}", style=_COLOURS[finding.level])
        console.print(mark, Text(plain(f"{finding.name:<14}{finding.value}")))
        if finding.advice:
            console.print(Text(plain(f"{'':<20}{finding.advice}"), style="dim"))


@click.command(epilog=example("faena audit shop.tasks:app", "faena audit shop.tasks:app mail"))
@words("[MODULE:APP] [QUEUE]...")
@common
@click.pass_obj
def audit(output: Output, words: tuple[str, ...]) -> int:
    """Check that the stored data is consistent; exit code 1 if it is not."""
    app, chosen = app_and_queues(words)
    found = session.run(app, lambda: _audit(app, chosen))
    rows = [
        (queue, one.kind, one.name, one.problem) for queue, ones in found.items() for one in ones
    ]

    def view(console: Console) -> None:
        if rows:
            console.print(table(("queue", "kind", "name", "problem"), rows, spare=("kind",)))
        else:
            console.print(Text(f"{counted(len(chosen), 'queue')}: consistent"))

    heads = ("queue", "kind", "name", "problem")
    output.list((dict(zip(heads, row, strict=True)) for row in rows), view)
    if rows:
        found = f"{counted(len(rows), 'violation')} found"
        raise click.ClickException(f"{found}, see above; please report it")
    return 0


async def _audit(app: Faena, queues: Sequence[Queue]) -> dict[str, list[Violation]]:
    runtime = await app.runtime()
    shards = [name for queue in queues for name in await runtime.routers.of(queue.name).names()]
    return {shard: await audit_queue(runtime.engine, shard) for shard in shards}
