"""Writes a job to the outbox once: the same id again is the same work, whatever else it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from faena import Task
from faena.errors import ArgumentError
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_TAKEN: Final = "id must be new"
"""How a job is refused whose id belongs to another one that waits in the outbox."""


async def enqueue_once(
    system: System, connection: Connection, task: Task[Any, Any], payload: Any, **options: Any
) -> tuple[str, bool]:
    """The id of the job, and whether the outbox did not have it; it may have run before."""
    # A statement, since `connection.transaction()` would commit if it were the first one.
    await connection.execute("SAVEPOINT once")
    try:
        made = await system.pg.outbox.enqueue(connection, task, payload, **options)
    except ArgumentError as error:
        await connection.execute("ROLLBACK TO SAVEPOINT once")
        if "id" not in options or not str(error).startswith(_TAKEN):
            raise
        return str(options["id"]), False
    await connection.execute("RELEASE SAVEPOINT once")
    return made, True
