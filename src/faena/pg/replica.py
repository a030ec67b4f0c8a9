"""Reads on a replica, as long as it is not too far behind; else on the primary.

How far it is behind is told by positions in the WAL, which need no clock: a replica that has
replayed up to where the primary was at an instant has everything that was committed before. A
timestamp of the last replayed transaction alone would say that a replica is late when nobody
writes. It counts besides, where the primary was not asked early enough. Positions of another
server, or of another timeline, tell nothing: after a promotion, a replica of the former primary may
be ahead of the new one, and lack all that is committed there.

    start         ├── the primary's position, unless one is known that is recent enough
                  ├── a transaction on the replica, with its position
                  └── too far behind, or no answer: the primary, for some seconds without asking
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, LiteralString, NamedTuple

import psycopg
from psycopg import errors as pg_errors

from faena.engine.calls import pg as calls
from faena.errors import FaenaError
from faena.pg.failure import as_raised
from faena.pg.pool import Pools, ReadConnection, ReplicaConnection, limited
from faena.values.view import View

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres

CHECK_S: Final = 1.0
"""How long one look at a server may take."""
PAUSE_S: Final = 2.0
"""How long the replica is left alone after it was late or gave no answer."""
STEADY_S: Final = 5.0
"""How long it must have been in use again before that is told."""
_TOLD_FROM_S: Final = 1.0
"""Nobody is told that a replica is late by less."""
_SAMPLES: Final = 64

_PRIMARY: Final = """
    SELECT set_config('transaction_read_only', 'on', true),
        NOT pg_is_in_recovery(), CASE WHEN NOT pg_is_in_recovery()
            THEN (pg_current_wal_insert_lsn() - '0/0')::bigint END,
        current_setting('wal_block_size')::bigint,
        pg_size_bytes(current_setting('wal_segment_size')),
        extract(epoch FROM clock_timestamp())::float8,
        (SELECT system_identifier FROM pg_control_system()), CASE WHEN NOT pg_is_in_recovery()
            THEN ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int END
"""
_REPLICA: Final = """
    SELECT set_config('transaction_read_only', 'on', true), pg_is_in_recovery(),
        (pg_last_wal_replay_lsn() - '0/0')::bigint,
        extract(epoch FROM pg_last_xact_replay_timestamp())::float8,
        extract(epoch FROM clock_timestamp())::float8,
        (SELECT system_identifier FROM pg_control_system()),
        greatest((SELECT received_tli FROM pg_stat_wal_receiver),
            (SELECT timeline_id FROM pg_control_checkpoint()),
            (SELECT min_recovery_end_timeline FROM pg_control_recovery()))
"""
"""Where its receiver is only some roles may see; for others it follows with a restart point."""

_log = logging.getLogger("faena.pg")


class Line(NamedTuple):
    """Whose WAL positions are in."""

    system: int
    timeline: int
    """Each promotion begins another."""


class Sample(NamedTuple):
    """Where the primary was."""

    at: float
    """Before it was asked, by this process's clock."""
    position: int
    """Whatever was committed then is before this byte of the WAL."""
    clock: float
    """The primary's clock."""
    line: Line


class Replayed(NamedTuple):
    """Where the replica is."""

    position: int | None
    last: float | None
    """When the last transaction that it has replayed was committed, by the primary's clock."""
    clock: float
    """The replica's clock."""
    line: Line


class ReplicaView(View, frozen=True, kw_only=True):
    """How the replica is."""

    is_usable: bool
    """Whether it answers, and replays what its primary writes."""
    lag_s: float | None
    """By how many seconds it is behind at most; None if that is unknown."""
    reason: str | None
    """Why all reads go to the primary."""


class _NotUsableError(Exception):
    """Why the replica does not serve this read."""


class Replica:
    """Decides for each read where it goes, and tells when that changes."""

    def __init__(self, pg: Postgres, url: str | None, most: int) -> None:
        self._pg, self.url = pg, url
        self._pools = Pools(f"faena-{pg.app.name}-replica", most, CHECK_S, ReplicaConnection)
        self._samples: deque[Sample] = deque(maxlen=_SAMPLES)
        self._asked_at = -PAUSE_S
        self._failed_at: float | None = None
        self._is_told = False
        self._telling: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def reading(self, max_lag_s: float) -> AsyncGenerator[ReadConnection]:
        """A transaction that only reads: here if it is fresh enough, else on the primary."""
        async with AsyncExitStack() as stack:
            connection = await self._enter(stack, max_lag_s)
            if connection is None:
                connection = await stack.enter_async_context(self._pg.transaction())
                await self._note(connection, monotonic())
            try:
                with as_raised("read"):
                    yield connection
            except (FaenaError, psycopg.OperationalError) as error:
                cause = error.__cause__ if isinstance(error, FaenaError) else error
                if connection.is_replica and isinstance(cause, psycopg.OperationalError):
                    self._fail(str(error), max_lag_s)
                raise

    async def view(self) -> ReplicaView:
        """Look now."""
        async with AsyncExitStack() as stack:
            try:
                _, lag_s = await self._look(stack, monotonic(), 0.0)
            except _NotUsableError as error:
                return ReplicaView(is_usable=False, lag_s=None, reason=str(error))
        known = round(lag_s, 3) if isfinite(lag_s) else None
        return ReplicaView(is_usable=True, lag_s=known, reason=None)

    async def close(self) -> None:
        """Close this event loop's connections."""
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)
        await self._pools.close()

    # -- the decision -----------------------------------------------------------------------------

    async def _enter(self, stack: AsyncExitStack, max_lag_s: float) -> ReadConnection | None:
        """A transaction on the replica, or None if it is not to be used now."""
        now = monotonic()
        if self.url is None or (self._failed_at or -PAUSE_S) + PAUSE_S > now:
            return None
        async with AsyncExitStack() as own:
            try:
                connection, lag_s = await self._look(own, now, max_lag_s)
            except _NotUsableError as error:
                self._fail(str(error), max_lag_s)
                return None
            if lag_s > max_lag_s:
                self._fail(behind(lag_s), max_lag_s)
                return None
            stack.push_async_exit(own.pop_all())
        self._succeed()
        return connection

    async def _look(
        self, stack: AsyncExitStack, now: float, max_lag_s: float
    ) -> tuple[ReadConnection, float]:
        """A transaction on the replica, and how far it is behind."""
        newest = self._samples[-1].at if self._samples else float("-inf")
        if now - newest >= max_lag_s / 4 and self._asked_at + PAUSE_S <= now:
            await self._sample()
        connection, replayed = await self._begin(stack)
        lag_s = lag(self._samples, replayed, now)
        if lag_s is None:
            is_other = self._samples[-1].line.system != replayed.line.system
            what = "is a replica of another server" if is_other else "has not followed a promotion"
            raise _NotUsableError(f"it {what}")
        return connection, lag_s

    async def _begin(self, stack: AsyncExitStack) -> tuple[ReadConnection, Replayed]:
        if self.url is None:
            raise _NotUsableError("there is none")
        try:
            lent = self._pools.lend(self.url, CHECK_S)
            connection = await stack.enter_async_context(lent)
            with limited(connection, CHECK_S):
                _, is_replica, position, last, clock, *line = await _row(connection, _REPLICA)
        except (psycopg.Error, OSError) as error:
            raise _NotUsableError(f"it gives no answer: {error}") from error
        if not is_replica:
            raise _NotUsableError("it is no replica")
        return connection, Replayed(position, last, clock, Line(*line))

    async def _sample(self) -> None:
        """Ask the primary where it is; if it does not answer, it is not asked for a while."""
        at = monotonic()
        try:
            async with self._pg.lend(CHECK_S) as connection:
                with limited(connection, CHECK_S):
                    await self._note(connection, at)
        except (psycopg.Error, OSError, FaenaError):
            self._asked_at = at

    async def _note(self, connection: ReadConnection, at: float) -> None:
        """Begin a transaction that only reads, and remember where the primary is."""
        _, is_primary, *rest = await _row(connection, _PRIMARY)
        if is_primary:
            insert, block, segment, clock, *line = rest
            position = before_header(insert, block, segment)
            self._samples.append(Sample(at, position, clock, Line(*line)))

    # -- telling ----------------------------------------------------------------------------------

    def _fail(self, why: str, max_lag_s: float) -> None:
        self._failed_at = monotonic()
        if not self._is_told and max_lag_s >= _TOLD_FROM_S:
            self._is_told = True
            _log.warning("reads go to the primary and not to the replica: %s", why)
            self._tell("replica_late", why)

    def _succeed(self) -> None:
        if self._is_told and monotonic() >= (self._failed_at or 0) + STEADY_S:
            self._is_told = False
            _log.info("reads go to the replica again")
            self._tell("replica_on_time", "")

    def _tell(self, event: str, why: str) -> None:
        """An event, beside the read and whether the broker answers or not."""

        async def work() -> None:
            with suppress(FaenaError):
                engine = (await self._pg.app.runtime()).engine
                await calls.tell(engine, event, self._pg.app.name, why)

        task = asyncio.create_task(work())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)


def behind(lag_s: float) -> str:
    """A replica that has replayed nothing since it was started may be behind by any time."""
    return f"it is {lag_s:.1f} s behind" if isfinite(lag_s) else "nobody knows how far it is behind"


def lag(samples: deque[Sample], replayed: Replayed, now: float) -> float | None:
    """By how many seconds a replica is behind at most; None if it follows another primary."""
    if samples and samples[-1].line != replayed.line:
        return None
    known = [one for one in samples if one.line == replayed.line]
    has = [one for one in known if one.position <= (replayed.position or -1)]
    fresh_at = max((one.at for one in has), default=float("-inf"))
    lacks = [one.clock for one in known if one not in has]
    clock = samples[-1].clock + (now - samples[-1].at) if samples else replayed.clock
    if replayed.last is None or replayed.last > min(lacks, default=float("inf")):
        return max(0.0, now - fresh_at)  # else the clock of the primary was put back
    return max(0.0, min(now - fresh_at, clock - replayed.last))


def before_header(position: int, block: int, segment: int) -> int:
    """The end of the last record. The next one may begin after the header of a page, and a replica
    that has replayed everything is before that header."""
    if position % segment == 40:
        return position - 40
    return position - 24 if position % block == 24 else position


async def _row(connection: ReadConnection, words: LiteralString) -> tuple[Any, ...]:
    row = await (await connection.execute(words)).fetchone()
    if row is None:
        raise pg_errors.NoData("PostgreSQL must tell where it is")
    return row
