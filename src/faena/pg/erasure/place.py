"""A place where data of tenants are: it can be counted, and erased in bounded steps."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from faena.errors import FaenaError

if TYPE_CHECKING:
    from faena.pg.erasure.record import Tally


class Kept(msgspec.Struct, frozen=True):
    """What stays although its tenant asked for erasure."""

    place: str
    number: int
    reason: str
    until: datetime | None
    """When nothing protects it any more; None: for ever, or unknown."""


class Found(NamedTuple):
    """What a place has of a tenant."""

    number: int
    """To be erased."""
    kept: tuple[Kept, ...] = ()
    more: tuple[tuple[str, int], ...] = ()
    """To be erased, and counted under another name than the place's."""


class Place(Protocol):
    """Where data are."""

    @property
    def name(self) -> str:
        """In counts: `outbox`, `table public.jobs`, …"""
        ...

    async def count(self, tenant: str) -> Found:
        """What is there now; changes nothing."""
        ...

    async def erase(self, tenant: str, tally: Tally) -> None:
        """Erase it; may be interrupted at any moment and run again."""
        ...


class NotYet(FaenaError):
    """The place cannot be erased now, and can be later: jobs are live, an archiver is at work."""
