"""What a crowd of virtual users does, and what it tells: the words between two processes.

A group has stages, as load tests have them: its number of users goes in a straight line to each
stage's number within its time. A user takes the next errand of the group, does it, thinks for a
moment, and takes the next one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self


class Stage(NamedTuple):
    """A part of the time."""

    seconds: float
    users: int
    """At its end."""


class Errand(NamedTuple):
    """One request, made until it is taken."""

    name: str
    """What is measured: requests of one name belong together."""
    method: str
    path: str
    who: int = 0
    """Whose headers it shows: an index into those of the group."""
    body: str = ""
    key: str = ""
    """Of the request, if it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Users who do the same."""

    name: str
    stages: tuple[Stage, ...]
    errands: str
    """A file with an errand in each line."""
    headers: tuple[dict[str, str], ...]
    think_s: float
    repeats: bool = False
    """Whether the errands begin anew after the last one."""
    begins_s: float = 0.0

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """As JSON has it."""
        lists: dict[str, Any] = {
            "stages": tuple(Stage(*each) for each in told["stages"]),
            "headers": tuple(told["headers"]),
        }
        return cls(**{**told, **lists})

    @property
    def ends_s(self) -> float:
        """When its last user leaves."""
        return self.begins_s + sum(one.seconds for one in self.stages)

    def users_at(self, second: float) -> int:
        """How many there should be."""
        left, before = second - self.begins_s, 0
        if left < 0:
            return 0
        for one in self.stages:
            if left < one.seconds:
                return round(before + (one.users - before) * left / one.seconds)
            left, before = left - one.seconds, one.users
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdPlan:
    """All groups of one crowd."""

    url: str
    groups: tuple[Group, ...]

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return max(one.ends_s for one in self.groups)

    def to_json(self) -> str:
        """On one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """As it was written."""
        told: dict[str, Any] = json.loads(text)
        return cls(url=told["url"], groups=tuple(map(Group.from_dict, told["groups"])))


class Sample(NamedTuple):
    """One request and its answer."""

    name: str
    at: float
    """When it was sent, by the monotonic clock of the machine."""
    ms: float
    status: int
    """0: no answer came."""


class Done(NamedTuple):
    """What became of one errand."""

    group: str
    errand: int
    """Its place in the file."""
    ending: str
    """`taken`, `refused`, `given up` after being turned away, or `unknown`."""
    tries: int


@dataclass(slots=True)
class Told:
    """What a crowd has told since it last did."""

    users: int
    lags_ms: list[float] = field(default_factory=list[float])
    """How late an empty loop beside the users woke up."""
    samples: list[Sample] = field(default_factory=list[Sample])
    done: list[Done] = field(default_factory=list[Done])

    def to_json(self) -> str:
        """On one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """As it was written."""
        told: dict[str, Any] = json.loads(text)
        return cls(
            users=told["users"],
            lags_ms=told["lags_ms"],
            samples=[Sample(*one) for one in told["samples"]],
            done=[Done(*one) for one in told["done"]],
        )


def write_errands(path: Path, errands: list[Errand]) -> str:
    """The file of a group."""
    path.write_text("".join(f"{json.dumps(one)}\n" for one in errands), "utf-8")
    return str(path)


def read_errands(path: str) -> list[Errand]:
    """As they were written."""
    with Path(path).open(encoding="utf-8") as lines:
        return [Errand(*json.loads(line)) for line in lines]
