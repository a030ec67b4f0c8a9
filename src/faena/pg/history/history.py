"""The history of an app's jobs: search, statistics, erasure, and how far it is behind.

    pg = Postgres(app, history=History(queues=["mail"], keep="365d"))
    page = await pg.history.search(queue="mail", state="dead", error="timeout")

Workers fill it (`reader.py`). Reading it opens no transaction for longer than one page.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from faena.engine.calls.history import HistoryCalls
from faena.errors import FaenaError, nearest
from faena.options import build
from faena.options.fields import check_is
from faena.pg.history.option import History
from faena.values.duration import Duration, to_us
from faena.values.names import check_label

if TYPE_CHECKING:
    from faena.pg.history.reader import HistoryReader
    from faena.pg.history.view import HistoryView, PastJob, PastPage, TaskStatistics
    from faena.pg.postgres import Postgres

_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0
_TOTALS: Final = """
    SELECT (SELECT coalesce(sum(stored), 0)::bigint FROM faena.history_shards WHERE namespace = %s),
           (SELECT coalesce(sum(jobs), 0)::bigint FROM faena.history_gaps WHERE namespace = %s)
"""

_log = logging.getLogger("faena.pg")


def _window(given: Duration) -> timedelta:
    return timedelta(microseconds=to_us("window", given, least_us=1_000_000))


class SearchFields(TypedDict, total=False):
    """What to look for; see `Search`."""

    id: str
    queue: Any
    task: str
    tenant: str
    state: str
    error: str
    since: datetime
    until: datetime
    payload: Mapping[str, Any]


class StatisticsFields(TypedDict, total=False):
    """Whose statistics; see `Search`."""

    queue: Any
    task: str
    tenant: str
    since: datetime
    until: datetime


class JobHistory:
    """The history in one database."""

    def __init__(self, pg: Postgres, options: History) -> None:
        self._pg, self.options = pg, options

    def covers(self, queue: str) -> bool:
        """Whether jobs of a queue have a history here."""
        return self.options.queues is None or queue in self.options.queues

    # -- reading ----------------------------------------------------------------------------------

    async def search(
        self, *, limit: int = 50, cursor: str | None = None, **fields: Unpack[SearchFields]
    ) -> PastPage:
        """Ends of jobs, newest first; `cursor` is that of the page before, with the same fields."""
        from faena.pg.history.search import Search, find  # noqa: PLC0415 - needs Postgres itself

        search = build(Search, "search", fields)
        async with self._pg.transaction("history") as connection:
            return await find(connection, search, limit=limit, cursor=cursor)

    async def job(self, queue: str, job_id: str) -> Sequence[PastJob]:
        """All ends of one job, the last one first."""
        return (await self.search(queue=queue, id=job_id, limit=1000)).jobs

    async def statistics(
        self, *, window: Duration | None = None, **fields: Unpack[StatisticsFields]
    ) -> list[TaskStatistics]:
        """Numbers, waits, runs and errors of each task; for each `window`, counted from 1970."""
        from faena.pg.history.search import Search  # noqa: PLC0415 - needs Postgres itself
        from faena.pg.history.statistics import statistics  # noqa: PLC0415

        search = build(Search, "statistics", fields)
        each = None if window is None else _window(window)
        async with self._pg.transaction("history") as connection:
            return await statistics(connection, search, each)

    async def view(self) -> HistoryView:
        """How far it is behind, and what it lacks."""
        from faena.pg.history.view import HistoryView, ShardBacklog  # noqa: PLC0415

        reader = await self._reader()
        calls = HistoryCalls(reader.engine)
        found = [(shard, await calls.backlog(shard)) for shard in await reader.shards()]
        async with self._pg.transaction("history") as connection:
            totals = await connection.execute(_TOTALS, [reader.engine.namespace] * 2)
            row = await totals.fetchone()
        stored, lost = row or (0, 0)
        oldest_s = max((one.oldest_s for _, one in found if one.oldest_s is not None), default=None)
        return HistoryView(
            entries=sum(one.entries for _, one in found),
            size=sum(one.bytes for _, one in found),
            oldest_s=oldest_s,
            is_late=oldest_s is not None and oldest_s * 1e6 >= self.options.late_us,
            stored=stored,
            lost=lost + sum(one.lost for _, one in found),
            shards=tuple(
                ShardBacklog(
                    shard=shard,
                    entries=one.entries,
                    size=one.bytes,
                    oldest_s=one.oldest_s,
                    lost=one.lost,
                )
                for shard, one in found
                if one.entries or one.lost
            ),
        )

    # -- changing ---------------------------------------------------------------------------------

    async def erase(self, *, tenant: str) -> int:
        """Delete what is known of a tenant's jobs that have ended until now; returns how many rows.

        What still waits in the broker is not stored any more. Jobs that end later are.
        """
        from faena.pg.history.erasure import erase  # noqa: PLC0415 - needs Postgres itself
        from faena.pg.history.store import instant  # noqa: PLC0415

        check_label("tenant", tenant)
        reader = await self._reader()
        until = instant(await reader.time_us())
        total = await erase(self._pg, tenant, until)
        await reader.run_once()  # so that nothing of it is left in the broker
        return total

    async def read_now(self) -> int:
        """Store what waits in the broker, as workers do all the time; returns the entries."""
        return await (await self._reader()).run_once()

    # -- workers ----------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Fill it until cancelled; whatever fails stops no job."""
        self._warn_of_unknown()
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                await (await self._reader()).run()
            except FaenaError as error:
                _log.warning("the history is tried again in %.0f s: %s", wait_s, error)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _warn_of_unknown(self) -> None:
        """Queues may be declared after the history, so a name is not refused earlier."""
        known = [name for name, one in self._pg.app.queues.items() if not one.is_remote]
        for name in self.options.queues or ():
            if name not in known:
                words = "the history is of queue %s, which the app does not declare; %s"
                _log.warning(words, name, nearest(name, known))

    async def _reader(self) -> HistoryReader:
        from faena.pg.history.reader import HistoryReader  # noqa: PLC0415 - needs Postgres itself

        runtime = await self._pg.app.runtime()
        return HistoryReader(self._pg, runtime.engine, self.options)


def keep_history(pg: Postgres, options: Any) -> JobHistory:
    """Have an app keep a history: its broker, its workers, and who reads jobs."""
    from faena.pg.history.partition import Keeper  # noqa: PLC0415 - needs Postgres itself
    from faena.pg.history.past import PostgresPast  # noqa: PLC0415

    check_is("history", options, History)
    history = JobHistory(pg, options)
    table = Keeper(pg, options).table
    pg.partitioned_tables[table.name] = table
    pg.app.keep_history(options.queues, options.settings(), PostgresPast(pg, history))
    pg.app.add_service(history.serve)
    return history
