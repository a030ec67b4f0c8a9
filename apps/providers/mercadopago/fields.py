"""Reads the members of a JSON object, and refuses those that are not what they should be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Self, cast

from apps.providers.mercadopago import amount


class Unreadable(Exception):
    """The text is no JSON, or a member is missing or of another type."""


def decode(text: bytes) -> Any:
    """JSON whose numbers keep their decimals."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Unreadable("the answer is not JSON") from None


def _refuse(_name: str) -> None:
    raise ValueError("not a number")


class Fields:
    """The members of one object."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise Unreadable("an object was expected")
        self._members = cast("Mapping[str, object]", value)

    def text(self, name: str) -> str:
        """A text that is there and not empty; a number counts, since ids come as either."""
        if not (found := self.text_or_empty(name)):
            raise Unreadable(f"{name} is missing")
        return found

    def text_or_empty(self, name: str) -> str:
        """A text, or nothing."""
        value = self._members.get(name)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise Unreadable(f"{name} is not a text")
        return str(value)

    def centavos(self, name: str) -> int:
        """An amount that is there."""
        if (found := self.centavos_or_none(name)) is None:
            raise Unreadable(f"{name} is missing")
        return found

    def centavos_or_none(self, name: str) -> int | None:
        """An amount, or nothing."""
        value = self._members.get(name)
        if value is None:
            return None
        try:
            return amount.from_json(value)
        except ValueError:
            raise Unreadable(f"{name} is not an amount") from None

    def whole(self, name: str) -> int:
        """A whole number from 0."""
        value = self._members.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Unreadable(f"{name} is not a whole number")
        return value

    def truth(self, name: str) -> bool:
        """A boolean; the reference shows them as texts, too. Nothing counts as false."""
        value = self._members.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        if value not in {"true", "false"}:
            raise Unreadable(f"{name} is not a boolean")
        return value == "true"

    def instant(self, name: str) -> datetime | None:
        """An instant with its offset, or nothing."""
        value = self._members.get(name)
        if value is None:
            return None
        try:
            instant = datetime.fromisoformat(str(value))
        except ValueError:
            raise Unreadable(f"{name} is not an instant") from None
        if instant.tzinfo is None:
            raise Unreadable(f"{name} has no offset")
        return instant

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
