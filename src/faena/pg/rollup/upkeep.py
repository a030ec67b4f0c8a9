"""The daily job that computes recent periods of all roll-ups again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from faena.app import Faena

if TYPE_CHECKING:
    from faena.pg.rollup.registry import RolledUp

NAME: Final = "run-rollups"
DAILY: Final = "30 0 * * *"
"""At 00:30 UTC: what was committed late on the day before is there."""

_log = logging.getLogger("faena.pg")


class RollupUpkeep:
    """The schedule of one app; each PostgreSQL of the app that declares a roll-up joins it."""

    def __init__(self, app: Faena) -> None:
        self._members: list[RolledUp] = []

        async def run_rollups() -> dict[str, list[str]]:
            return await self.run_once()

        app.cron(DAILY, name=NAME)(run_rollups)

    @classmethod
    def of(cls, app: Faena) -> RollupUpkeep:
        """The one of the app, made at first use."""
        if cls not in app.attachments:
            app.attachments[cls] = cls(app)
        found: RollupUpkeep = app.attachments[cls]
        return found

    def join(self, member: RolledUp) -> None:
        """Have its roll-ups run too."""
        if member not in self._members:
            self._members.append(member)

    async def run_once(self) -> dict[str, list[str]]:
        """Run all; returns why one was refused, by name. One that is refused stops no other."""
        refused: dict[str, list[str]] = {}
        for member in self._members:
            refused |= (await member.run_rollups()).problems
        for name, problems in refused.items():
            _log.warning("roll-up %s: %s", name, "; ".join(problems))
        return refused
