"""Tickets of WSAA: where they are kept, and when a new one is asked for.

WSAA gives a ticket for twelve hours, and none of the same kind for some minutes after it: a ticket
that is lost cannot be had again at once. So tickets are kept in a store that all processes share,
and one asks at a time. What WSAA has just refused is not asked again for a while, by this process.

A process that dies between WSAA's answer and `save` loses the ticket: the next one to ask gets
`TicketHeld` until the guard window is over.
"""

from __future__ import annotations

import asyncio
import copy
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

from apps.providers.afip.credentials import Credentials
from apps.providers.afip.errors import AfipError, LoginRefused, Retryable

_PAUSE: Final = timedelta(seconds=60)
"""How long WSAA wants to be left alone after most refusals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The right to call a service, until it expires."""

    cuit: str
    """Whose certificate it was given for; it covers those that have delegated to it, too."""
    service: str
    token: str = field(repr=False)
    sign: str = field(repr=False)
    generated_at: datetime
    expires_at: datetime


class TicketStore(Protocol):
    """Keeps the tickets of one environment of AFIP's, for all processes that ask for them."""

    async def load(self, cuit: str, service: str) -> Ticket | None:
        """The ticket that was saved last."""
        ...

    async def save(self, ticket: Ticket) -> None:
        """Keep it in place of the one before."""
        ...

    def lock(self, cuit: str, service: str) -> AbstractAsyncContextManager[None]:
        """Held by one asker at a time, of all processes."""
        ...


class MemoryTicketStore:
    """For one process, and only as long as it lives."""

    def __init__(self) -> None:
        self._tickets: dict[tuple[str, str], Ticket] = {}
        self._locks = defaultdict[tuple[str, str], asyncio.Lock](asyncio.Lock)

    async def load(self, cuit: str, service: str) -> Ticket | None:
        """The ticket that was saved last."""
        return self._tickets.get((cuit, service))

    async def save(self, ticket: Ticket) -> None:
        """Keep it in place of the one before."""
        self._tickets[ticket.cuit, ticket.service] = ticket

    @asynccontextmanager
    async def lock(self, cuit: str, service: str) -> AsyncGenerator[None]:
        """Held by one asker at a time."""
        async with self._locks[cuit, service]:
            yield


Login = Callable[[Credentials, str], Awaitable[Ticket]]


class TicketDesk:
    """Finds a ticket that is good, or has one made."""

    def __init__(
        self,
        store: TicketStore,
        login: Login,
        *,
        now: Callable[[], datetime],
        margin: timedelta,
    ) -> None:
        self._store, self._login, self._now, self._margin = store, login, now, margin
        self._known: dict[tuple[str, str], Ticket] = {}
        """The last ones: one that the store has in place of it is found when it is refused."""
        self._refusals: dict[tuple[bytes, str], tuple[datetime, AfipError]] = {}

    async def ticket(self, credentials: Credentials, service: str) -> tuple[Ticket, bool]:
        """One that is good for a while, and whether it is new."""
        key = credentials.cuit, service
        known = self._known.get(key) or await self._store.load(*key)
        if known is not None and self._is_good(known):
            self._known[key] = known
            return known, False
        return await self.renew(credentials, service, instead_of=known)

    async def renew(
        self, credentials: Credentials, service: str, *, instead_of: Ticket | None
    ) -> tuple[Ticket, bool]:
        """Another than `instead_of`: the one that somebody else has got meanwhile, or a new one."""
        self._known.pop((credentials.cuit, service), None)
        async with self._store.lock(credentials.cuit, service):
            stored = await self._store.load(credentials.cuit, service)
            is_other = instead_of is None or (stored and stored.token != instead_of.token)
            if stored is not None and is_other and self._is_good(stored):
                return stored, False
            ticket = await self._ask(credentials, service)
            await self._store.save(ticket)
            return ticket, True

    def _is_good(self, ticket: Ticket) -> bool:
        return self._now() < ticket.expires_at - self._margin

    async def _ask(self, credentials: Credentials, service: str) -> Ticket:
        key = credentials.fingerprint, service
        self._raise_recent(key)
        try:
            return await self._login(credentials, service)
        except (LoginRefused, Retryable) as error:
            if pause := _pause(error):  # a copy: the traceback would keep the key in memory
                self._refusals[key] = self._now() + pause, copy.copy(error)
            raise

    def _raise_recent(self, key: tuple[bytes, str]) -> None:
        """What was refused just now would be again, and asking would be counted against us."""
        until, error = self._refusals.pop(key, (None, None))
        if until is None or error is None or self._now() >= until:
            return
        self._refusals[key] = until, error
        again = copy.copy(error)
        if isinstance(again, Retryable):
            again.retry_after = (until - self._now()).total_seconds()
        raise again


def _pause(error: LoginRefused | Retryable) -> timedelta | None:
    if isinstance(error, LoginRefused):
        return _PAUSE
    return None if error.retry_after is None else timedelta(seconds=error.retry_after)
