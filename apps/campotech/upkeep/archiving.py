"""Moves old rows of a table to the archive when asked to; never sooner than is declared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from apps.campotech.messages.dispatched import ArchiveProcess
from apps.campotech.tiers import BATCH
from faena import Discard, Job

if TYPE_CHECKING:
    from apps.campotech.system import System

LEAST_DAYS: Final = {"jobs": 730, "notification_logs": 180, "technician_locations": 90}
"""What the specification asks for. The declared retention counts besides: it is never shortened."""


class Archived(NamedTuple):
    """What a run has done."""

    table: str
    rows: int
    problem: str | None


class Archiving:
    """The task `archive` of the queue `cleanup`."""

    def __init__(self, system: System) -> None:
        self._pg = system.pg
        task = system.queues["cleanup"].task(
            name="archive", timeout="1h", retry=BATCH.retry(system.pace)
        )
        self.archive = task(self._archive)

    async def _archive(self, asked: ArchiveProcess, job: Job) -> Archived:
        """A run that is killed goes on in the next one."""
        _check(asked)
        table = f"campotech.{asked.table}"
        views = {one.table: one for one in await self._pg.retention_views()}
        cutoff = views[table].cutoff
        if cutoff is None:
            raise Discard(f"rows of {asked.table} are kept for ever")
        now = datetime.now(UTC)
        wanted = now - timedelta(days=asked.retention_days)
        # Rows leave when they are as old as the message wants and as the declaration demands.
        at = None if wanted >= cutoff else now - (cutoff - wanted)
        (done,) = await self._pg.archive(
            table, at=at, report=lambda progress: job.progress(progress._asdict())
        )
        return Archived(asked.table, done.rows, done.problem)


def _check(asked: ArchiveProcess) -> None:
    least = LEAST_DAYS[asked.table]
    if asked.retention_days < least:
        raise Discard(
            f"retentionDays of {asked.table} must be at least {least}, got {asked.retention_days}"
        )
    if asked.archive_format != "json":
        raise Discard("archiveFormat must be json: archives are JSON lines")
    if not asked.delete_after_archive:
        raise Discard("deleteAfterArchive must be true: archived rows leave their table")
