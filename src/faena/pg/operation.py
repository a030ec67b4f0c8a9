"""Who has asked for a change on the command line: written before it is begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres


async def note_operation(pg: Postgres, by: str, command: str, subject: str = "") -> None:
    """Enter it; a change that fails afterwards was asked for all the same."""
    async with pg.transaction("note") as connection:
        await connection.execute(
            "INSERT INTO faena.operations (by_whom, command, subject) VALUES (%s, %s, %s)",
            [by, command, subject],
        )
