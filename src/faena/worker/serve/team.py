"""The worker processes for which one server answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from faena.worker.serve.member import Member

State = Literal["starting", "serving", "stopping"]


class Team(NamedTuple):
    """The processes at one instant."""

    state: State
    known: Sequence[Member]
    """Those that serve, and those that have ended their jobs."""
    wanted: int
    """How many should serve."""

    @property
    def members(self) -> list[Member]:
        """Those that serve."""
        return [one for one in self.known if not one.has_left]


Look = Callable[[], Team]
