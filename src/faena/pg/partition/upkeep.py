"""The weekly job that creates partitions ahead, and warns of tables whose partitions run out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from faena.app import Faena
from faena.engine.calls import pg as calls

if TYPE_CHECKING:
    from faena.pg.partition.registry import Partitioned

NAME: Final = "ensure-partitions"
WEEKLY: Final = "0 2 * * SUN"
"""Sundays at 02:00 UTC: two runs may be missed before a runway counts as short."""

_log = logging.getLogger("faena.pg")


class Upkeep:
    """The schedule of one app; each PostgreSQL of the app that declares a table joins it."""

    def __init__(self, app: Faena) -> None:
        self._app = app
        self._members: list[Partitioned] = []

        async def ensure_partitions() -> dict[str, list[str]]:
            return await self.run_once()

        app.cron(WEEKLY, name=NAME)(ensure_partitions)

    @classmethod
    def of(cls, app: Faena) -> Upkeep:
        """The one of the app, made at first use."""
        if cls not in app.attachments:
            app.attachments[cls] = cls(app)
        found: Upkeep = app.attachments[cls]
        return found

    def join(self, member: Partitioned) -> None:
        """Have its tables ensured too."""
        if member not in self._members:
            self._members.append(member)

    async def run_once(self) -> dict[str, list[str]]:
        """Ensure all declared tables; returns the problems that remain, by table.

        One table that fails keeps no other from its partitions.
        """
        found: dict[str, list[str]] = {}
        for member in self._members:
            failed = await member.ensure_partitions()
            for view in await member.partitions():
                problems = [*failed.problems.get(view.table, ()), *view.problems]
                if problems:
                    found[view.table] = problems
                    _log.warning("partitions of %s: %s", view.table, "; ".join(problems))
        if found:
            await self._tell(found)
        return found

    async def _tell(self, problems: Mapping[str, Sequence[str]]) -> None:
        """An event for each table; the problems are in the log and the result in any case."""
        engine = (await self._app.runtime()).engine
        for table, some in problems.items():
            await calls.tell(engine, "partitions_short", table, "; ".join(some))
