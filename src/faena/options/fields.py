"""Shared by the option classes: optional values, derived fields, and building from a mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Final, TypeVar

from faena.errors import ConfigError, shown, unknown_name
from faena.values.duration import to_us
from faena.values.numbers import check_whole

T = TypeVar("T")

_MANY: Final = 1_000_000_000_000
_SHORTEST_TIMEOUT_US: Final = 1_000


def build(cls: type[T], what: str, given: Mapping[str, Any]) -> T:
    """Make options of class `cls`; the error for an unknown name suggests the nearest one."""
    known = [one for one in fields(cls) if one.init]  # pyright: ignore[reportArgumentType] - T is one of the dataclasses above
    names = {one.name for one in known}
    for name in given:
        if name not in names:
            raise unknown_name(f"{what} option", name, names, value=given[name])
    for one in known:
        is_needed = one.default is MISSING and one.default_factory is MISSING
        if is_needed and one.name not in given:
            raise ConfigError(f"{what} option {one.name} must be given, got none", field=one.name)
    return cls(**given)


def derive(options: object, name: str, value: Any) -> None:
    """Set a field of frozen options during construction."""
    object.__setattr__(options, name, value)


def optional_us(what: str, value: Any) -> int | None:
    """Microseconds, or None as given."""
    return None if value is None else to_us(what, value)


def attempt_us(timeout: Any) -> int | None:
    """Microseconds of an attempt's timeout; zero is refused."""
    return None if timeout is None else to_us("timeout", timeout, least_us=_SHORTEST_TIMEOUT_US)


def optional_whole(what: str, value: Any, *, least: int, most: int = _MANY) -> int | None:
    """A bounded whole number, or None as given."""
    return None if value is None else check_whole(what, value, least=least, most=most)


def check_choice(what: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a value that is not one of the known ones."""
    if value not in known:
        words = " or ".join(repr(word) for word in known)
        raise ConfigError(f"{what} must be {words}, got {shown(value)}", field=what, value=value)


def check_is(what: str, value: Any, kind: type) -> None:
    """Refuse a value of another class, such as a plain dict for a `Retry`."""
    if not isinstance(value, kind):
        raise ConfigError(
            f"{what} must be a {kind.__name__}, got {shown(value)}", field=what, value=value
        )
