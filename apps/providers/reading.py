"""Reads answers of services: as values of a type, or member by member. What is not as it must be is
`Unreadable`, never guessed, and never quoted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Self, TypeVar, cast

import msgspec

T = TypeVar("T")


class Unreadable(Exception):
    """The text is no JSON, or a member is missing or of another type."""


def typed(text: bytes | str, kind: type[T], otherwise: Exception) -> T:
    """JSON as a value of a type; `otherwise` is raised if it is none."""
    if (found := typed_or_none(text, kind)) is None:
        raise otherwise
    return found


def typed_or_none(text: bytes | str, kind: type[T]) -> T | None:
    """JSON as a value of a type that is not None; None if it is none."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def decode(text: bytes, *, has_decimals: bool = False) -> Any:
    """The value of a JSON text; with `has_decimals`, numbers keep their decimals."""
    parse: dict[str, Any] = {"parse_float": Decimal, "parse_constant": _refuse}
    try:
        return json.loads(text, **(parse if has_decimals else {}))
    except (ValueError, RecursionError):
        raise Unreadable("it is not JSON") from None


def _refuse(_name: str) -> None:
    raise ValueError("not a number")


class Fields:
    """The members of one object."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise Unreadable("an object was expected")
        self._members = cast("Mapping[str, object]", value)

    def text(self, name: str) -> str:
        """A text that is there and not empty."""
        if not (found := self.text_or_empty(name)):
            raise Unreadable(f"{name} is missing")
        return found

    def text_or_empty(self, name: str) -> str:
        """A text, or nothing."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, str):
            raise Unreadable(f"{name} is not a text")
        return value or ""

    def whole(self, name: str) -> int:
        """A whole number from 0."""
        value = self._members.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Unreadable(f"{name} is not a whole number")
        return value

    def inner(self, name: str) -> Self:
        """An object inside of this one; an empty one if there is none."""
        value = self._members.get(name)
        return type(self)({} if value is None else value)

    def items(self, name: str) -> list[object]:
        """A list; empty if there is none."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, list):
            raise Unreadable(f"{name} is not a list")
        return cast("list[object]", value or [])

    def objects(self, name: str) -> list[Self]:
        """A list of objects; empty if there is none."""
        return [type(self)(one) for one in self.items(name)]
