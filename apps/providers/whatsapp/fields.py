"""Reads the members of a JSON object, and refuses those that are not what they should be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Self, cast


class Unreadable(Exception):
    """The text is no JSON, or a member is missing or of another type."""


def decode(text: bytes) -> Any:
    """The value of a JSON text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("it is not JSON") from None


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
        """A whole number from 0; some come as texts."""
        value = self._members.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Unreadable(f"{name} is not a whole number")
        return value

    def is_true(self, name: str) -> bool:
        """Whether it is there and true."""
        return self._members.get(name) is True

    def instant(self, name: str) -> datetime:
        """An instant in seconds since 1970."""
        try:
            return datetime.fromtimestamp(self.whole(name), UTC)
        except (ValueError, OverflowError, OSError):
            raise Unreadable(f"{name} is not an instant") from None

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
