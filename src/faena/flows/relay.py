"""Carries letters and errands between homes.

    a job of a flow ends    its home writes a letter, in the script that settles it
    the letter is read      at the flow's queue, which notes what must be sent next: errands
    errands are run         the jobs are enqueued, and struck off the list

Everybody may carry everything at any time: a letter is read once whoever brings it, a job has one
id and comes once, and nothing is struck off before it has arrived. So whoever dies on the way loses
nothing, and the next worker that sweeps the home goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from faena.engine import Engine
from faena.engine.calls.flows import Letter, Mail
from faena.errors import FaenaError, ScriptError, StoreError
from faena.flows.pending_sends import Errands
from faena.producing.client import Client

_log = logging.getLogger("faena.flows")


class Postman:
    """Carries what homes have to carry, as it is told of them."""

    def __init__(self, engine: Engine, client: Client) -> None:
        self._mail = Mail(engine)
        self._errands = Errands(self._mail, client)
        self._homes: dict[str, None] = {}
        self._news = asyncio.Event()

    def tell(self, home: str) -> None:
        """A home has something to be carried."""
        self._homes[home] = None
        self._news.set()

    async def run(self) -> None:
        """Carry until cancelled; what fails is told again by a later sweep."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._homes:
                home = next(iter(self._homes))
                del self._homes[home]
                await self.try_to_carry(home)

    async def try_to_carry(self, home: str) -> None:
        """Carry now if that is possible; a worker does it later otherwise."""
        try:
            await self.carry(home)
        except FaenaError as error:
            _log.warning("home %s: its letters must wait: %s", home, error)

    async def carry(self, home: str) -> None:
        """Carry everything that a home has, and what comes of it.

        Raises the last of what kept something back, when all else is done.
        """
        waiting = [home]
        failure: FaenaError | None = None
        while waiting:
            one = waiting.pop(0)
            for to in await self._mail.addressees(one):
                try:
                    if await self._deliver(one, to) and to not in waiting:
                        waiting.append(to)
                except StoreError as error:
                    failure = error
            failure = await self._errands.run(one) or failure
        if failure is not None:
            raise failure

    async def _deliver(self, home: str, to: str) -> bool:
        """Bring all letters of a home to a queue; whether something is to be carried from there."""
        has_more = False
        left = 1
        while left and (letters := await self._mail.letters(home, to)):
            has_more = await self._hand_over(home, to, letters) or has_more
            left = await self._mail.posted(home, to, letters[-1].id)
        return has_more

    async def _hand_over(self, home: str, to: str, letters: Sequence[Letter]) -> bool:
        """Have letters read; one that nobody can read is thrown away, or it would keep all back."""
        try:
            return await self._mail.receive(to, home, letters)
        except ScriptError as error:
            if len(letters) == 1:
                _log.error("a letter from %s to %s cannot be read: %s", home, to, error)
                return False
        handed = [await self._hand_over(home, to, [one]) for one in letters]
        return any(handed)
