"""How safely a job must be stored before `enqueue` returns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from faena.errors import ConfigError, nearest, shown
from faena.values.numbers import keep_whole

_TEXT: Final = re.compile(r"([a-z]+)(?:\(([0-9]{1,3})\))?")
_MOST_REPLICAS: Final = 16
_KNOWN: Final = ("fsynced", "memory", "replicated(n)")


class DurabilityLevel(StrEnum):
    """From the fastest to the safest."""

    MEMORY = "memory"
    """The broker has it in memory; its configuration decides when it is on disk."""

    REPLICATED = "replicated"
    """A number of replicas have acknowledged it."""

    FSYNCED = "fsynced"
    """It is on the broker's disk."""


@dataclass(frozen=True, slots=True)
class Durability:
    """A level and, for `replicated`, how many replicas must acknowledge; `of` reads `str()`."""

    level: DurabilityLevel = DurabilityLevel.MEMORY
    """"memory", "replicated" or "fsynced"."""

    replicas: int = 0
    """Replicas that must acknowledge: 1 to 16 for `replicated`, 0 for the others."""

    def __post_init__(self) -> None:
        if not isinstance(self.level, DurabilityLevel):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's
            raise ConfigError(
                f"level must be a DurabilityLevel, got {shown(self.level)}: use "
                f'Durability.of("fsynced"), or give a string as durability="fsynced"',
                field="level",
                value=self.level,
            )
        least, most = (1, _MOST_REPLICAS) if self.level is DurabilityLevel.REPLICATED else (0, 0)
        keep_whole(
            self, "replicas", least=least, most=most, what=f"replicas of {self.level} durability"
        )

    def __hash__(self) -> int:
        return self.replicas  # fast, since every call hashes it; there are few values

    def __str__(self) -> str:
        return f"{self.level}({self.replicas})" if self.replicas else str(self.level)

    @property
    def strength(self) -> tuple[int, int]:
        """For comparisons: the strongest of several levels is safe for all."""
        return list(DurabilityLevel).index(self.level), self.replicas

    @classmethod
    def of(cls, value: Any) -> Durability:
        """Read "memory", "fsynced", "replicated" (one replica) or "replicated(2)"."""
        if isinstance(value, Durability):
            return value
        found = _TEXT.fullmatch(value) if isinstance(value, str) else None
        name, count = found.groups() if found else ("", None)
        if name not in set(DurabilityLevel):
            raise ConfigError(
                f"durability must be a known level, got {shown(value)}; {nearest(value, _KNOWN)}",
                field="durability",
                value=value,
            )
        level = DurabilityLevel(name)
        default = 1 if level is DurabilityLevel.REPLICATED else 0
        return cls(level, default if count is None else int(count))
