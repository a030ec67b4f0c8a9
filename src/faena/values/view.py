"""The base of values that reading calls return; each can become a plain dict, for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar

import msgspec


class View(msgspec.Struct, frozen=True):
    """A value that a reading call returns."""

    also: ClassVar[tuple[str, ...]] = ()
    """Properties that its dict has in addition to its fields."""
    apart: ClassVar[tuple[str, ...]] = ()
    """Fields that its dict leaves out: payloads, headers, and what JSON cannot express."""

    def to_dict(self) -> dict[str, Any]:
        """Its fields as a plain dict of JSON values.

        It leaves out payloads and headers, which may be secret. Results are plain values.
        """
        names = (*self.__struct_fields__, *self.also)
        return {name: _plain(getattr(self, name)) for name in names if name not in self.apart}


def _plain(value: Any) -> Any:
    if isinstance(value, View):
        return value.to_dict()
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    elif dataclasses.is_dataclass(value):
        value = _options(value)
    elif hasattr(value, "_asdict"):
        value = named_fields(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return _decoded(value) if isinstance(value, bytes) else _word(value)


def named_fields(value: Any) -> dict[str, Any]:
    """The fields of a named tuple; of an amount of money, its text as well."""
    text = {"text": str(value)} if "__str__" in vars(type(value)) else {}
    return {**value._asdict(), **text}


def _options(value: Any) -> Any:
    """An option's `str()` if it defines one, else the fields that a program can set."""
    if "__str__" in vars(type(value)):
        return str(value)
    return {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.init}


def _word(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.value if isinstance(value, Enum) else value


def _decoded(blob: bytes) -> Any:
    """The decoded JSON; None if it is not JSON."""
    try:
        return msgspec.json.decode(blob)
    except msgspec.DecodeError:
        return None
