"""What a list of the monitor is: rows that are read again and again, and what may be done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from faena.app import Faena


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Something that may be done with a row."""

    key: str
    words: str
    """What it is called, such as `pause`."""
    effect: str
    """What it does, as a question before it is done."""
    do: Callable[[], Awaitable[Any]]


class Row(NamedTuple):
    """One line."""

    key: str
    """Stays the same from reading to reading."""
    cells: Sequence[str]
    style: str = ""
    """As rich has it: colour means that somebody should look."""
    about: Any = None


class Reading(NamedTuple):
    """A list at one instant."""

    said: str
    """What is wrong, or how much there is, in a sentence."""
    rows: Sequence[Row]


@dataclass
class Listing(ABC):
    """One list. It keeps no rows itself."""

    app: Faena
    by: str
    """Who acts."""
    title: str = field(init=False, default="")
    heads: Sequence[str] = field(init=False, default=())

    @abstractmethod
    async def read(self) -> Reading:
        """What it shows now."""

    def opened(self, row: Row) -> Listing | None:  # noqa: ARG002 - most rows lead nowhere
        """The list behind a row; None if there is none."""
        return None

    async def told(self, row: Row) -> str | None:  # noqa: ARG002 - as above
        """All that is known of a row, as text; None if the row shows it."""
        return None

    def deeds(self, row: Row) -> Sequence[Deed]:  # noqa: ARG002 - as above
        """What may be done with a row now."""
        return ()
