"""The few parts of DER that a CMS message is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SEQUENCE: Final = 0x30
SET: Final = 0x31
INTEGER: Final = 0x02
OCTETS: Final = 0x04
OID: Final = 0x06
FIRST: Final = 0xA0
"""A field of its own number 0; the next one is 0xA1."""
_LONG: Final = 0x80


class BadDer(ValueError):
    """These bytes are no DER."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tag, what it holds, and both as they were written."""

    tag: int
    content: bytes
    whole: bytes

    def parts(self) -> list[Value]:
        """The values inside."""
        return list(_values(self.content))

    def expect(self, tag: int) -> Value:
        """Itself, if it has this tag."""
        if self.tag != tag:
            raise BadDer(f"tag must be {tag:#x}, got {self.tag:#x}")
        return self


def read_der(data: bytes) -> Value:
    """The one value that these bytes are."""
    values = list(_values(data))
    if len(values) != 1:
        raise BadDer("there must be one value")
    return values[0]


def _values(data: bytes) -> Iterator[Value]:
    start = 0
    while start < len(data):
        begin, end = _bounds(data, start)
        yield Value(data[start], data[begin:end], data[start:end])
        start = end


def _bounds(data: bytes, start: int) -> tuple[int, int]:
    """Where the content of the value at `start` begins and ends."""
    if start + 2 > len(data):
        raise BadDer("a value is cut off")
    first = data[start + 1]
    count = first & 0x7F if first & _LONG else 0
    if first == _LONG or count > 4:
        raise BadDer("a length must be definite, and of four bytes at most")
    begin = start + 2 + count
    length = int.from_bytes(data[start + 2 : begin]) if count else first
    if begin > len(data) or begin + length > len(data):
        raise BadDer("a value is cut off")
    return begin, begin + length
