"""Finds every bad field of a value, after the fast path has refused it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final, is_typeddict

import msgspec

from faena.codec.base import Problem
from faena.codec.type_hint import (
    bare,
    element_hints,
    fields_of,
    is_anything,
    record_of,
    value_hint,
)

_MESSAGE: Final = re.compile(r"(?P<reason>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?")
_MOST_BITS: Final = 14_284  # of 4300 decimal digits, where Python stops converting
_ARRAYS: Final = (list, tuple, set, frozenset)


def join(path: str, part: str | int) -> str:
    """The path of a part: "items[2].price", or "meta['a b']" if a dot would be ambiguous."""
    if isinstance(part, int):
        return f"{path}[{part}]"
    if part.isidentifier():
        return f"{path}.{part}" if path else part
    return f"{path}[{part!r}]"


def plain_problems(value: Any, path: str = "") -> Iterator[Problem]:
    """The parts of an untyped value that JSON cannot represent exactly."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _text_problems(key, path)
                yield from plain_problems(item, join(path, key))
            else:
                yield path or "$", f"has a key of type {type(key).__name__}, which must be str"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from plain_problems(item, join(path, index))
    elif value is None or isinstance(value, str | int | float):
        yield from _scalar_problems(value, path)
    else:
        yield path or "$", f"is of type {type(value).__name__}, which JSON cannot represent exactly"


def typed_problems(hint: Any, value: Any, path: str = "") -> list[Problem]:
    """The parts of `value` that do not match `hint`: inner parts first, then the whole."""
    kind = bare(hint)
    if is_anything(kind) or kind is list or kind is dict:
        return list(plain_problems(value, path))
    inside = list(_inside(kind, value, path))
    return inside or list(_whole(hint, value, path))


def problem_of(error: Exception, path: str = "") -> Problem:
    """The problem that msgspec's message describes."""
    found = _MESSAGE.fullmatch(str(error))
    if found is None:
        return path or "$", _said(str(error))
    where = path + (found["path"] or "")
    key = "has a bad key: " if found["key"] else ""
    return where.removeprefix(".") or "$", key + _said(found["reason"])


def _inside(kind: Any, value: Any, path: str) -> Iterator[Problem]:
    if record_of(kind) is not None:
        yield from _in_record(kind, value, path)
    elif isinstance(value, _ARRAYS):
        hints = element_hints(kind, len(value))
        for index, (hint, item) in enumerate(zip(hints, value, strict=False)):
            yield from typed_problems(hint, item, join(path, index))
    elif isinstance(value, Mapping) and (inner := value_hint(kind)) is not None:
        for key, item in value.items():
            yield from typed_problems(inner, item, join(path, str(key)))


def _in_record(kind: Any, value: Any, path: str) -> Iterator[Problem]:
    fields = fields_of(kind)
    if isinstance(value, Mapping):
        present = {one.name: value[one.key] for one in fields if one.key in value}
        yield from _unknown(record_of(kind), value.keys() - {one.key for one in fields}, path)
    elif not is_typeddict(record_of(kind)) and isinstance(value, record_of(kind)):
        present = {one.name: getattr(value, one.name) for one in fields}
    else:
        return
    for one in fields:
        if one.name in present:
            yield from typed_problems(one.hint, present[one.name], join(path, one.key))
        elif one.is_required:
            yield join(path, one.key), "is required"


def _unknown(record: Any, keys: Iterable[Any], path: str) -> Iterator[Problem]:
    if issubclass(record, msgspec.Struct) and record.__struct_config__.forbid_unknown_fields:
        for key in sorted(map(str, keys)):
            if key != record.__struct_config__.tag_field:
                yield join(path, key), "is unknown"


def _whole(hint: Any, value: Any, path: str) -> Iterator[Problem]:
    """At most one problem, the most specific one."""
    yield from islice(chain(_scalar_problems(value, path), _misfits(hint, value, path)), 1)


def _misfits(hint: Any, value: Any, path: str) -> Iterator[Problem]:
    try:
        fitted = msgspec.convert(value, hint, str_keys=True)
    except (msgspec.ValidationError, OverflowError) as error:
        yield problem_of(error, path)
    else:
        if isinstance(value, int) and isinstance(fitted, float) and not _is_same(value, fitted):
            yield path or "$", "is a whole number that a float cannot represent exactly"


def _is_same(whole: int, real: float) -> bool:
    return math.isfinite(real) and int(real) == whole


def _scalar_problems(value: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, str):
        yield from _text_problems(value, path)
    elif isinstance(value, int | float):
        yield from _number_problems(value, path)


def _text_problems(text: str, path: str) -> Iterator[Problem]:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        yield path or "$", "has an unpaired surrogate, which UTF-8 cannot encode"


def _number_problems(number: float, path: str) -> Iterator[Problem]:
    if isinstance(number, float) and not math.isfinite(number):
        yield path or "$", f"is {number}, which is not a JSON number"
    elif isinstance(number, int) and number.bit_length() > _MOST_BITS:
        yield path or "$", "is a whole number of more than 4300 digits"


def _said(reason: str) -> str:
    if reason.startswith("Invalid enum value"):  # it goes on to repeat the value
        return "is not one of the allowed values"
    return (reason[:1].lower() + reason[1:]).replace("`", "")
