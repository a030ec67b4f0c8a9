"""What the kinds of work have in common that are done for each organisation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple
from uuid import UUID

from apps.campotech.messages import SchedulerMessage
from faena.pg import Connection

AFTER: Final = "after"
"""In the metadata of a message: the page behind this."""


class Page(NamedTuple):
    """Some organisations, in the order of their ids."""

    after: UUID
    most: int
    now: datetime


class Asked(NamedTuple):
    """Work for one organisation."""

    organization: UUID
    message: SchedulerMessage
    now: datetime


class Work:
    """One kind, done in the transaction that also records that it is done."""

    kind: ClassVar[str]
    """As messages call it."""
    metadata: ClassVar[Mapping[str, str]] = {}
    """What messages for one organisation carry when they come from a page."""
    options: Mapping[str, Any] = {}
    """Of its task, where they are not those of the queue."""

    async def prepare(self, message: SchedulerMessage) -> None:
        """What must be done before the first page; may be done again."""

    async def page(self, transaction: Connection, page: Page) -> list[UUID]:
        """The organisations that have something to be done."""
        raise NotImplementedError

    async def do(self, transaction: Connection, asked: Asked) -> dict[str, Any]:
        """The work for one organisation."""
        raise NotImplementedError
