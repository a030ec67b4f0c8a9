"""The base class of codecs, and the error for a refused payload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from faena.errors import PayloadError

T = TypeVar("T")

Problem: TypeAlias = tuple[str, str]
"""Where a value is wrong ("items[2].price"; "$" is the whole) and why ("expected int, got str")."""

_SHOWN = 5


class Codec(ABC, Generic[T]):
    """Turns values of one type into JSON bytes and back."""

    @abstractmethod
    def encode(self, value: T | Any) -> bytes:
        """Compact JSON of an instance, or of plain data for one."""

    @abstractmethod
    def decode(self, raw: bytes | msgspec.Raw) -> T:
        """The value that was encoded."""

    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of what it decodes; None for any JSON."""
        return None

    def check(self, value: T | Any) -> T:
        """The value that a handler would receive for `value`."""
        return self.decode(self.encode(value))


def refusal(op: str, expected: str, problems: Iterable[Problem]) -> PayloadError:
    """The error that lists every bad field, without values, because they may be secrets."""
    fields = tuple(problems)
    shown = "; ".join(f"{path} {reason}" for path, reason in fields[:_SHOWN])
    more = f"; and {len(fields) - _SHOWN} more" if len(fields) > _SHOWN else ""
    return PayloadError(
        f"payload must be {expected}, got {len(fields)} bad "
        f"{'field' if len(fields) == 1 else 'fields'}: {shown}{more}",
        fields=fields,
        op=op,
    )


def of_result(error: PayloadError) -> PayloadError:
    """The same error for a handler's result."""
    words = str(error).replace("payload must", "result must", 1)
    return PayloadError(words, fields=error.fields, op=error.op)
