"""Sends the exchanges of a shard until they are answered.

An exchange without an answer is sent again under the same call id. A script that fails has changed
nothing, and would fail again with the same jobs. So these jobs are settled one by one, and one bad
job does not affect the others. A job that cannot be settled is buried with the script's error. A
job that cannot even be buried keeps its lease until it expires.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from faena.engine import Engine
from faena.engine.scripts import Exchanged, Settlement, Turn
from faena.errors import FaenaError, ScriptError, StoreUnavailable
from faena.outcomes import Buried, ErrorRecord

_CODE = "SCRIPT_ERROR"
_BACK_OFF_S = 1.0

_log = logging.getLogger("faena.worker")


class Exchanger:
    """The exchanges of one shard."""

    def __init__(self, engine: Engine, worker: str, shard: str, calls: Callable[[], str]) -> None:
        self._engine = engine
        self._worker = worker
        self._shard = shard
        self._calls = calls

    async def ask(self, caller: str, turn: Turn) -> Exchanged:
        """Send the exchange until it is answered."""
        lost: list[str] = []
        while True:
            try:
                exchanged = await self._run(caller, turn)
                return exchanged._replace(lost=lost + exchanged.lost) if lost else exchanged
            except ScriptError:
                _log.exception("shard %s: an exchange failed; trying again", self._shard)
            if turn.settled:
                lost = await self._settle_apart(caller, turn)
                turn = turn._replace(settled=())
            else:
                await asyncio.sleep(_BACK_OFF_S)

    async def _run(self, caller: str, turn: Turn) -> Exchanged:
        """Send the exchange until the script has run or failed."""
        while True:
            try:
                return await self._engine.exchange(self._shard, caller, self._worker, turn)
            except ScriptError:
                raise
            except StoreUnavailable as error:
                if self._engine.wire.is_closed:
                    raise  # this program closed it, and will not open it again
                _log.warning("shard %s: %s; trying again", self._shard, error)
            except FaenaError:
                _log.exception("shard %s: an exchange was refused; trying again", self._shard)
            await asyncio.sleep(_BACK_OFF_S)

    async def _settle_apart(self, caller: str, turn: Turn) -> list[str]:
        """Settle the jobs of a turn one by one; returns the ids whose leases were lost."""
        lost: list[str] = []
        for one in turn.settled:
            try:
                lost += await self._settle(caller, turn, one)
            except ScriptError as error:
                lost += await self._bury(caller, turn, one, error)
        return lost

    async def _settle(self, caller: str, turn: Turn, one: Settlement) -> list[str]:
        single = Turn(self._calls(), 0, [one], least_lease_us=turn.least_lease_us)
        # another caller name, because the turn itself is sent later, under its older call id
        return (await self._run(f"{caller}.apart", single)).lost

    async def _bury(
        self, caller: str, turn: Turn, one: Settlement, error: ScriptError
    ) -> list[str]:
        _log.error("job %s cannot be settled and is buried: %s", one.id, error)
        record = ErrorRecord(name=type(error).__name__, message=str(error), code=_CODE)
        try:
            return await self._settle(caller, turn, one._replace(outcome=Buried(record)))
        except ScriptError as again:
            _log.error("job %s cannot be buried, its lease will expire: %s", one.id, again)
            return []
