"""Reads what scripts pack: their texts are bytes of any kind, and need not be UTF-8."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import msgspec

_NUMBERS: Final = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_PLAIN: Final = {0xC0: None, 0xC2: False, 0xC3: True}
_TEXTS: Final = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_LISTS: Final = {0xDC: ">H", 0xDD: ">I"}
_MAPS: Final = {0xDE: ">H", 0xDF: ">I"}


def unpack(packed: bytes) -> Any:
    """The value; bytes of a text that are not UTF-8 are replaced. Raises ValueError."""
    try:
        return _decoded(packed)
    except (msgspec.MsgspecError, TypeError, RecursionError) as error:
        raise ValueError(f"packed bytes must be readable: {error}") from None


def _decoded(packed: bytes) -> Any:
    try:
        return msgspec.msgpack.decode(packed)
    except UnicodeDecodeError:
        return _Reader(packed).value()


class _Reader:
    """Goes through packed bytes from their beginning; slow, and seldom needed."""

    def __init__(self, packed: bytes) -> None:
        self._packed, self._at = packed, 0

    def value(self) -> Any:
        head = self._number(">B")
        if head in _PLAIN:
            return _PLAIN[head]
        if head in _NUMBERS:
            return self._number(_NUMBERS[head])
        if head < 0x80 or head >= 0xE0:
            return head if head < 0x80 else head - 0x100
        for sizes, short, most, read in self._kinds():
            if head in sizes:
                return read(int(self._number(sizes[head])))
            if short <= head <= short + most:
                return read(head - short)
        raise ValueError(f"packed bytes must have no byte {head:#x} here")

    def _kinds(self) -> tuple[tuple[dict[int, str], int, int, Callable[[int], Any]], ...]:
        return (
            (_TEXTS, 0xA0, 31, self._text),
            (_LISTS, 0x90, 15, self._list),
            (_MAPS, 0x80, 15, self._map),
        )

    def _number(self, form: str) -> Any:
        try:
            (number,) = struct.unpack_from(form, self._packed, self._at)
        except struct.error as error:
            raise ValueError(f"packed bytes must be whole: {error}") from None
        self._at += struct.calcsize(form)
        return number

    def _text(self, size: int) -> str:
        text = self._packed[self._at : self._at + size]
        self._at += size
        return text.decode("utf-8", "replace")

    def _list(self, size: int) -> list[Any]:
        return [self.value() for _ in range(size)]

    def _map(self, size: int) -> dict[Any, Any]:
        return {self.value(): self.value() for _ in range(size)}
