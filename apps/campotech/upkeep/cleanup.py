"""Removes what nobody needs any more, in slices, and counts it first if only asked to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from apps.campotech.keys import key_of
from apps.campotech.messages import Cleanup
from apps.campotech.upkeep.comparison import ALL
from apps.providers import storage
from faena import Discard, Job, Queue

if TYPE_CHECKING:
    from apps.campotech.system import System

SLICE: Final = 500
_REPEATED: Final = timedelta(days=1)
"""For this long the id of a finished job says that its work is done."""
_LEAST_FINISHED: Final = timedelta(hours=1)
_PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Rows that may go: which table, which of its rows, and how old they must be at least."""

    table: str
    key: str
    column: str
    least: timedelta
    """Younger rows are never removed, whatever the message says."""
    more: str = ""

    @property
    def condition(self) -> str:
        """Which rows of `one` are old enough; takes the instant."""
        return f"one.{self.column} < %s {self.more}"


_SEEN: Final = Kind(
    table="whatsapp_seen", key="wa_message_id", column="created_at", least=timedelta(days=30)
)
_TOLD: Final = Kind(
    table="payment_events", key="id", column="received_at", least=timedelta(days=30)
)
_FILES: Final = Kind(
    table="files",
    key="key",
    column="created_at",
    least=timedelta(days=1),
    more="""
        AND NOT EXISTS (SELECT FROM campotech.photos p WHERE p.file_key = one.key)
        AND NOT EXISTS (SELECT FROM campotech.invoices i WHERE i.pdf_key = one.key)
    """,
)
KINDS: Final = {
    "expired_otps": [
        Kind(table="otps", key="phone", column="expires_at", least=timedelta(0)),
    ],
    "expired_idempotency": [_SEEN, _TOLD],
    "orphaned_files": [_FILES],
}


class Cleaned(NamedTuple):
    """What a run has done, or would do."""

    kind: str
    found: int
    removed: int


class Cleaning:
    """The queue `cleanup`."""

    def __init__(self, system: System, files: storage.Client) -> None:
        self._system, self._pg, self._files = system, system.pg, files
        queue = system.queues["cleanup"]
        self.clean = queue.task(name="clean")(self._clean)

    def starter(self, kind: str) -> Callable[[datetime], Awaitable[object]]:
        """What a schedule calls: the cleaning up of one instant."""

        async def start(at: datetime) -> object:
            given: dict[str, Any] = {
                "org_id": ALL,
                "idempotency_key": f"{kind}-{at:%Y%m%dT%H%M%S.%f}",
                "created_at": at,
                "cleanup_type": kind,
            }
            message = Cleanup(**given)
            return await self.clean.enqueue(message, id=str(key_of(message)), on_conflict="keep")

        return start

    async def _clean(self, message: Cleanup, job: Job) -> Cleaned:
        name = message.cleanup_type
        if name == "old_audit_logs":
            return await self._archive_audit_logs(message)
        if name == "completed_jobs":
            return await self._clean_queues(message, job.started_at)
        return await self._clean_rows(KINDS[name], message, job)

    async def _clean_rows(self, kinds: list[Kind], message: Cleanup, job: Job) -> Cleaned:
        given = [(kind, _before(message, kind.least)) for kind in kinds]
        total, removed = sum([await self._count(*each) for each in given]), 0
        for each in () if message.dry_run else given:
            while number := await self._remove(*each):
                removed += number
                job.progress(min(100, 100 * removed // max(1, total)))
        return Cleaned(message.cleanup_type, total, removed)

    async def _count(self, kind: Kind, before: datetime) -> int:
        query = f"SELECT count(*) FROM campotech.{kind.table} one WHERE {kind.condition}"  # noqa: S608 - constants
        async with self._pg.transaction("cleanup") as connection:
            row = await (await connection.execute(query.encode(), [before])).fetchone()
        return int(row[0]) if row else 0

    async def _remove(self, kind: Kind, before: datetime) -> int:
        """One slice; how many rows it was. Objects go before the rows that name them are gone."""
        query = f"""
            DELETE FROM campotech.{kind.table} WHERE {kind.key} IN (
                SELECT {kind.key} FROM campotech.{kind.table} one WHERE {kind.condition}
                ORDER BY {kind.key} LIMIT {SLICE} FOR UPDATE)
            RETURNING {kind.key}
        """  # noqa: S608 - constants
        async with self._pg.transaction("cleanup") as connection:
            rows = await (await connection.execute(query.encode(), [before])).fetchall()
            if kind.table == "files":
                for (key,) in rows:
                    await self._files.delete(key)
        return len(rows)

    async def _archive_audit_logs(self, message: Cleanup) -> Cleaned:
        """Their retention decides; the law wants three years, so no message makes it shorter."""
        if message.older_than is not None:
            raise Discard("olderThan must be left out: audit logs are kept for three years by law")
        views = {one.table: one for one in await self._pg.retention_views()}
        waiting = len(views["campotech.audit_logs"].waiting)  # partitions
        if message.dry_run:
            return Cleaned(message.cleanup_type, waiting, 0)
        (done,) = await self._pg.archive("campotech.audit_logs")
        return Cleaned(message.cleanup_type, waiting, done.rows)

    async def _clean_queues(self, message: Cleanup, now: datetime) -> Cleaned:
        wanted = now - _REPEATED if message.older_than is None else message.older_than
        before, found = min(wanted, now - _LEAST_FINISHED), 0
        for queue in self._system.queues.values():
            if message.dry_run:
                found += await _count_completed(queue, before)
            else:
                found += await queue.clean("completed", age=now - before)
        return Cleaned(message.cleanup_type, found, 0 if message.dry_run else found)


async def _count_completed(queue: Queue, before: datetime) -> int:
    """The broker keeps the last thousand, so they are looked at one by one."""
    found, cursor, until = 0, None, int(before.timestamp() * 1e6)
    while True:
        page = await queue.jobs("completed", limit=_PAGE, cursor=cursor, source="broker")
        found += sum((one.finished_at or until) < until for one in page.jobs)
        cursor = page.cursor
        if cursor is None:
            return found


def _before(message: Cleanup, least: timedelta) -> datetime:
    latest = datetime.now(UTC) - least
    return latest if message.older_than is None else min(message.older_than, latest)
