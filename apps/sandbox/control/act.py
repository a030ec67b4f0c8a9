"""What can happen to a service: a verb, what it is given, and what it answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a verb is given: subclasses have its fields."""


class Nothing(Given, frozen=True, kw_only=True):
    """No fields."""


@dataclass(frozen=True, slots=True)
class Acts:
    """The verbs of one service, and the lists that it shows."""

    verbs: dict[str, Callable[[bytes], Any]] = field(default_factory=dict[str, Any])
    things: dict[str, Callable[[], Iterable[Any]]] = field(default_factory=dict[str, Any])

    def on(self, verb: str, kind: type[T], do: Callable[[T], Any]) -> None:
        """`do` what a verb says."""
        self.verbs[verb] = lambda body: do(msgspec.json.decode(body or b"{}", type=kind))

    async def act(self, verb: str, body: bytes) -> Any:
        """Do it; what is answered."""
        done = self.verbs[verb](body)
        return await done if inspect.isawaitable(done) else done


def one_of(things: Mapping[Any, T], key: Any, what: str) -> T:
    """What has a key; refused if there is nothing."""
    if key not in things:
        raise LookupError(f"{what} must be one that there is, got {key!r}")
    return things[key]
