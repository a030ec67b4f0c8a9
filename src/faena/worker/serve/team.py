"""The worker processes for which one server answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from faena.worker.serve.member import Member

State = Literal["starting", "serving", "stopping"]


class Team(NamedTuple):
    """The processes at one instant."""

    state: State
    members: Sequence[Member]
    """Those that serve."""
    wanted: int
    """How many should."""


Look = Callable[[], Team]
