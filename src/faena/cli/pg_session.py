"""Finds the app's PostgreSQL and connects to it for one command; the broker is not needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from faena.cli.app_lookup import find_app
from faena.cli.session import quiet_pool
from faena.errors import ConfigError

if TYPE_CHECKING:
    from faena.pg import Postgres

CONNECT_S: Final = 3
"""Shorter than a program's patience: a user waits for the answer."""

T = TypeVar("T")


def find_pg(target: str) -> Postgres:
    """The PostgreSQL of the app that MODULE:APP names."""
    app = find_app(target)
    try:
        from faena.pg import Postgres  # noqa: PLC0415 - needs psycopg
    except ImportError:
        raise ConfigError(
            "PostgreSQL needs more packages: pip install 'faena[pg]'", field="pg"
        ) from None
    return Postgres.of(app)


class Asked(NamedTuple):
    """A change that somebody asks for; it is recorded before it is begun."""

    by: str
    command: str
    subject: str = ""

    async def note(self, pg: Postgres) -> None:
        """Enter it in `faena.operations`."""
        from faena.pg.operation import note_operation  # noqa: PLC0415 - needs psycopg

        await note_operation(pg, *self)


def run(pg: Postgres, work: Callable[[], Awaitable[T]], asked: Asked | None = None) -> T:
    """Do the work, then disconnect; an unreachable server is an error within seconds."""

    async def session() -> T:
        with quiet_pool():
            return await connected()

    async def connected() -> T:
        async with pg:
            await pg.reach(CONNECT_S)
            if asked is not None:
                await asked.note(pg)
            return await work()

    return asyncio.run(session())
