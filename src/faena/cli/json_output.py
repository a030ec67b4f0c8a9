"""The JSON document of `--json`: one form for all commands.

A list is `{"items": […], "cursor": …}`. Instants are ISO 8601 strings in UTC. Durations are in
seconds, with names that end in `_s`; the library's values are in microseconds, and the names of
their fields tell which are durations. Keys of mappings are users' own names and stay as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

import msgspec

from faena.limits import Limit
from faena.values.view import named_fields

_INSTANTS: Final = frozenset({"at", "until", "since"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def iso(us: int | None) -> str | None:
    """An instant of the server; None for None, and for 0, which means no end."""
    if not us:
        return None
    return (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


def seconds(us: float | None) -> float | None:
    """A duration in seconds."""
    return None if us is None else us / 1e6


def page(items: Iterable[Any], cursor: str | None = None) -> dict[str, Any]:
    """A list, and the cursor of its next page."""
    return {"items": list(items), "cursor": cursor}


def document(value: Any) -> Any:
    """Any result of a command, as JSON values."""
    fields = _fields_of(value)
    if fields is not None:
        return dict(_told(name, one) for name, one in fields.items())
    if isinstance(value, Mapping):
        return {str(name): document(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [document(one) for one in value]
    return _word(value)


def _fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of one of the library's values; None for others, such as payloads."""
    if isinstance(value, Limit):
        return None
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value):
        told = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return {name: one for name, one in told.items() if f"{name}_us" not in told}
    return named_fields(value) if hasattr(value, "_asdict") else None


def _told(name: str, value: Any) -> tuple[str, Any]:
    if _is_instant(name) and type(value) is int:
        return name, iso(value)
    if not name.endswith("_us"):
        return name, document(value)
    is_many = isinstance(value, Mapping)
    lengths = {key: seconds(one) for key, one in value.items()} if is_many else seconds(value)
    return f"{name[:-3]}_s", lengths


def _is_instant(name: str) -> bool:
    return name in _INSTANTS or name.endswith(("_at", "_until"))


def _word(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case Limit():
            return str(value)
        case _:
            return value
