"""The way past the pooler, for what needs a session: it must lead to the same database.

A copy of a database has the same tables, so a session there would succeed in the wrong place. A
lock tells the two apart: what a transaction of the pool has locked, a session of the same database
cannot lock. Names and identifiers could not: a snapshot of a server has them too.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import psycopg

from faena.errors import FaenaError, StoreRejected, StoreUnavailable
from faena.pg.address import DIRECT_URL, without_secrets
from faena.pg.failure import words_of
from faena.values.view import View

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

OP: Final = "direct"


class DirectView(View, frozen=True, kw_only=True):
    """Whether sessions can go past the pooler."""

    is_usable: bool
    reason: str | None
    """Why they cannot."""


async def connect_directly(pg: Postgres, url: str) -> Connection:
    """A new connection in autocommit; refused if it leads to another database than `url`."""
    try:
        connection = await pg.connect(url, autocommit=True)
    except (psycopg.Error, OSError) as error:
        raise StoreUnavailable(
            f"direct_url {without_secrets(url)} cannot be reached: {words_of(error)}; correct "
            f"direct_url or {DIRECT_URL}",
            op=OP,
        ) from error
    try:
        await _refuse_other(pg, connection, url)
    except BaseException:
        await connection.close()
        raise
    return connection


async def _refuse_other(pg: Postgres, connection: Connection, url: str) -> None:
    key = secrets.randbits(63)
    async with pg.transaction(OP) as own:
        await own.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        found = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [key])
        is_free = await found.fetchone() == (True,)
    if is_free:
        raise StoreRejected(
            f"direct_url must lead to the same database as url, got {without_secrets(url)}, which "
            f"leads to another database than url: correct direct_url or {DIRECT_URL}",
            op=OP,
        )


async def direct_view(pg: Postgres) -> DirectView | None:
    """Try it; None if no address leads past a pooler."""
    if not pg.has_direct_url():
        return None
    try:
        async with pg.session("status"):
            return DirectView(is_usable=True, reason=None)
    except FaenaError as error:
        return DirectView(is_usable=False, reason=str(error))
