"""The daily job that archives old rows, and tells what could not leave."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from faena.app import Faena
from faena.engine.calls import pg as calls
from faena.job import Job

if TYPE_CHECKING:
    from faena.pg.archive.archiver import Progress
    from faena.pg.archive.registry import Retained
    from faena.pg.archive.run import Archived

NAME: Final = "archive-old-rows"
DAILY: Final = "0 3 * * *"
"""03:00 UTC, every day."""
_QUEUE: Final = "scheduler"
_LONGEST: Final = "23h"

_log = logging.getLogger("faena.pg")


class Daily:
    """The schedule of one app; each PostgreSQL of the app that declares a policy joins it."""

    def __init__(self, app: Faena) -> None:
        self._app = app
        self._members: list[Retained] = []

        async def archive_old_rows(job: Job) -> list[dict[str, Any]]:
            return await self.run_once(job)

        queue = app.known(_QUEUE) if _QUEUE in app.queues else app.queue(_QUEUE)
        app.cron(DAILY, name=NAME)(queue.task(timeout=_LONGEST)(archive_old_rows))

    @classmethod
    def of(cls, app: Faena) -> Daily:
        """The one of the app, made at first use."""
        if cls not in app.attachments:
            app.attachments[cls] = cls(app)
        found: Daily = app.attachments[cls]
        return found

    def join(self, member: Retained) -> None:
        """Have its policies carried out too."""
        if member not in self._members:
            self._members.append(member)

    async def run_once(self, job: Job) -> list[dict[str, Any]]:
        """Carry out all policies; returns what was done with each table."""

        def report(progress: Progress) -> None:
            job.progress(progress._asdict())

        done: list[Archived] = []
        for member in self._members:
            done += await member.archive(report=report)
        await self._tell([one for one in done if one.problem])
        return [dataclasses.asdict(one) for one in done]

    async def _tell(self, failed: Sequence[Archived]) -> None:
        """An event for each table; the problem is in the log and the result in any case."""
        for one in failed:
            _log.warning("retention of %s: %s", one.table, one.problem)
        if failed:
            engine = (await self._app.runtime()).engine
            for one in failed:
                await calls.tell(engine, "archive_failed", one.table, one.problem or "")
