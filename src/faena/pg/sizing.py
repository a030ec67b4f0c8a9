"""How many connections there are, how many this app may open, and whether that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from faena.pg.pool import APPLICATION, is_pooled
from faena.values.numbers import check_whole
from faena.values.view import View

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres

SESSIONS: Final = 1
"""Connections of a worker process beside its pool: the relay listens on one."""
_SPARE: Final = 5
"""Left to operators, backups and monitoring."""
_LARGE: Final = 100
_FACTS: Final = """
    SELECT current_setting('max_connections')::int,
        current_setting('superuser_reserved_connections')::int
            + coalesce(current_setting('reserved_connections', true)::int, 0),
        (SELECT coalesce(sum(numbackends), 0)::int FROM pg_stat_database),
        (SELECT count(*)::int FROM pg_stat_activity WHERE application_name = %s)
"""


class ConnectionsView(View, frozen=True, kw_only=True):
    """The connections of a PostgreSQL, and those that an app may open."""

    max_connections: int
    reserved: int
    """Of them, for superusers and privileged roles."""
    in_use: int
    """By anybody, in all databases."""
    own: int
    """Of them, by programs that use Faena, as this role can see."""
    pool: int
    """The most connections of one process, without sessions."""
    processes: int
    """Worker processes that the advice is for."""
    is_pooled: bool
    """Whether a pooler such as PgBouncer is in between."""
    has_direct_url: bool
    """Whether sessions go past it."""
    advice: tuple[str, ...]


async def connections(
    pg: Postgres, processes: int = 1, cores: int | None = None
) -> ConnectionsView:
    """Look, and advise for so many worker processes and so many cores of the server."""
    check_whole("processes", processes, least=1, most=10_000)
    if cores is not None:
        check_whole("cores", cores, least=1, most=10_000)
    async with pg.transaction("status") as connection:
        pooled = await is_pooled(connection)
        row = await (await connection.execute(_FACTS, [APPLICATION])).fetchone()
    most, reserved, in_use, own = row or (0, 0, 0, 0)
    view = ConnectionsView(
        max_connections=most,
        reserved=reserved,
        in_use=in_use,
        own=own,
        pool=pg.pool_size,
        processes=processes,
        is_pooled=pooled,
        has_direct_url=pg.has_direct_url(),
        advice=(),
    )
    return msgspec.structs.replace(view, advice=tuple(advise(view, cores)))


def advise(view: ConnectionsView, cores: int | None = None) -> list[str]:
    """What to change, or that it fits, in words."""
    usable = view.max_connections - view.reserved - _SPARE
    found = _behind_pooler(view, usable, cores) if view.is_pooled else _direct(view, usable)
    others = view.in_use - view.own
    if view.in_use >= usable:
        found.append(
            f"{view.in_use} of {view.max_connections} connections are in use: the next program may "
            f"be refused"
        )
    elif not view.is_pooled and _wanted(view) <= usable < _wanted(view) + others:
        found.append(
            f"other programs have {others} connections, which leaves this app {usable - others} of "
            f"the {_wanted(view)} that it may open"
        )
    return found


def processes(number: int) -> str:
    """In words."""
    return "1 process" if number == 1 else f"{number} processes"


def _wanted(view: ConnectionsView) -> int:
    return view.processes * (view.pool + SESSIONS)


def _direct(view: ConnectionsView, usable: int) -> list[str]:
    each = f"{processes(view.processes)} x (pool {view.pool} + {SESSIONS})"
    if _wanted(view) <= usable:
        return [f"{each} = {_wanted(view)} connections fit into {usable}"]
    fitting = usable // view.processes - SESSIONS
    lower = f"set pool={fitting}" if fitting >= 1 else "run fewer processes"
    larger = view.max_connections + _wanted(view) - usable
    raised = f"raise max_connections to {larger}"
    last = raised if larger <= _LARGE else "put PgBouncer in between"
    return [f"{each} = {_wanted(view)} connections do not fit into {usable}: {lower}, or {last}"]


def _behind_pooler(view: ConnectionsView, usable: int, cores: int | None) -> list[str]:
    busy = "2 x cores + 1 of the server" if cores is None else str(2 * cores + 1)
    clients = view.processes * view.pool
    found = [
        (
            f"a pooler is in between: default_pool_size {busy} keeps the server busy, and "
            f"max_client_conn must be {clients} at least"
        )
    ]
    if not view.has_direct_url:
        found.append(
            "set direct_url past the pooler: without it, jobs of a commit wait up to a second, and "
            "partitions cannot be detached"
        )
    elif view.processes * SESSIONS > usable:
        found.append(
            f"{processes(view.processes)} listen on connections past the pooler, and {usable} fit"
        )
    return found
