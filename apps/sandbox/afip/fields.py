"""Reads requests of WSFEv1 as the .NET service does.

Order is free, unknown elements and those of other namespaces are ignored, a missing number reads as
0, and a number that is none makes the whole request unreadable.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final
from xml.etree.ElementTree import Element

NAMESPACE: Final = "http://ar.gov.afip.dif.FEV1/"
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


class Unreadable(Exception):
    """A value is not of its type: the service answers with a fault."""


class Fields:
    """An element and its children by name."""

    def __init__(self, element: Element | None) -> None:
        self._element = element

    @property
    def is_sent(self) -> bool:
        """Whether the element was there at all."""
        return self._element is not None

    def child(self, name: str) -> Fields:
        """The fields of a child, which may be missing."""
        return Fields(None if self._element is None else self._element.find(qualified(name)))

    def children(self, name: str) -> list[Fields]:
        """All of this name."""
        found = [] if self._element is None else self._element.findall(qualified(name))
        return [Fields(one) for one in found]

    def text(self, name: str) -> str | None:
        """The text of a child; None if it was not sent."""
        child = self.child(name)._element  # noqa: SLF001 - of the same class
        return None if child is None else (child.text or "").strip()

    def int32(self, name: str) -> int:
        """A number of type int."""
        return self._whole(name, 2**31)

    def int64(self, name: str) -> int:
        """A number of type long."""
        return self._whole(name, 2**63)

    def decimal(self, name: str) -> Decimal:
        """A number of type double, as it was written."""
        return self.optional_decimal(name) or Decimal(0)

    def optional_decimal(self, name: str) -> Decimal | None:
        """The same; None if it was not sent."""
        text = self.text(name)
        if text is None:
            return None
        if not _DECIMAL.fullmatch(text):
            raise Unreadable(name)
        return Decimal(text)

    def _whole(self, name: str, limit: int) -> int:
        text = self.text(name)
        if text is None:
            return 0
        if not _WHOLE.fullmatch(text) or not -limit <= int(text) < limit:
            raise Unreadable(name)
        return int(text)


def qualified(name: str) -> str:
    """The name in the namespace of the service."""
    return f"{{{NAMESPACE}}}{name}"
