"""Reads type annotations: their fields and elements, and whether pydantic is needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

_FOREIGN: Final = ("pydantic", "annotated_types")


class Field(NamedTuple):
    """A field of a record: its names in Python and in JSON, its hint, whether it is required."""

    name: str
    key: str
    hint: Any
    is_required: bool


def is_anything(hint: Any) -> bool:
    """Does the hint allow every JSON value?"""
    return hint is Any or hint is object


def name_of(hint: Any) -> str:
    """The hint as it is written in code."""
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def bare(hint: Any) -> Any:
    """The hint without `Annotated` metadata, and without `None` in a union."""
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            hint = get_args(hint)[0]
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif origin in {Union, UnionType}:
            choices = [choice for choice in get_args(hint) if choice is not NoneType]
            if len(choices) != 1:
                return hint
            hint = choices[0]
        else:
            return hint


def record_of(hint: Any) -> Any:
    """The class with named fields that we can walk, or None."""
    record = get_origin(hint) or hint
    if not isinstance(record, type):
        return None
    if issubclass(record, msgspec.Struct):
        return None if record.__struct_config__.array_like else record
    return record if dataclasses.is_dataclass(record) or is_typeddict(record) else None


def class_of(annotation: Any) -> Any:
    """The class whose instances a payload of this type is, or None when it is plain data."""
    record = record_of(bare(annotation))
    return None if is_typeddict(record) else record


def fields_of(hint: Any) -> list[Field]:
    """The fields of a struct, a dataclass or a TypedDict, with its type variables filled in."""
    record = record_of(hint)
    filled = dict(zip(getattr(record, "__parameters__", ()), get_args(hint), strict=False))
    hints = {
        name: _fill(inner, filled)
        for name, inner in get_type_hints(record, include_extras=True).items()
    }
    if issubclass(record, msgspec.Struct):
        return [
            Field(one.name, one.encode_name, hints[one.name], one.required)
            for one in msgspec.structs.fields(record)
        ]
    if dataclasses.is_dataclass(record):
        return [
            Field(one.name, one.name, hints[one.name], _is_required(one))
            for one in dataclasses.fields(record)
            if one.init
        ]
    return [_typed_dict_field(record, name, hint) for name, hint in hints.items()]


def element_hints(hint: Any, size: int) -> list[Any]:
    """The hint of each element of an array of that size; empty if it is not a typed array."""
    origin, arguments = get_origin(hint), get_args(hint)
    if not _is_kind(origin, Sequence) and not _is_kind(origin, AbstractSet):
        return []
    if _is_kind(origin, tuple) and (len(arguments) != 2 or arguments[1] is not Ellipsis):
        return list(arguments) if len(arguments) == size else []
    return [arguments[0] if arguments else Any] * size


def value_hint(hint: Any) -> Any:
    """The hint of a mapping's values; None if it is not a mapping."""
    if not _is_kind(get_origin(hint), Mapping):
        return None
    return get_args(hint)[1] if get_args(hint) else Any


def mentions_pydantic(annotation: Any) -> bool:
    """Does anything inside belong to pydantic: a model, its dataclass, one of its constraints?"""
    return any(_is_foreign(hint) for hint in _all_hints(annotation))


def unsupported(annotation: Any) -> Any:
    """The first class inside that JSON cannot represent, or None."""
    seen: set[int] = set()
    waiting: list[Any] = [msgspec.inspect.type_info(annotation)]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.CustomType):
            return info.cls
        if isinstance(info, msgspec.inspect.Type | msgspec.inspect.Field) and id(info) not in seen:
            seen.add(id(info))
            waiting += [getattr(info, name) for name in info.__struct_fields__]
        elif isinstance(info, tuple):
            waiting += info
    return None


def _is_kind(origin: Any, kind: type) -> bool:
    return isinstance(origin, type) and issubclass(origin, kind)


def _fill(hint: Any, filled: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return filled.get(hint, Any)
    free = getattr(hint, "__parameters__", ())
    return hint[tuple(filled.get(one, Any) for one in free)] if free and get_args(hint) else hint


def _typed_dict_field(record: Any, name: str, hint: Any) -> Field:
    # Where annotations are texts, `__required_keys__` does not know of NotRequired; the hint does.
    wrapper = get_origin(hint)
    if wrapper is Required or wrapper is NotRequired:
        return Field(name, name, get_args(hint)[0], wrapper is Required)
    return Field(name, name, hint, name in record.__required_keys__)


def _is_required(one: dataclasses.Field[Any]) -> bool:
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


def _is_foreign(hint: Any) -> bool:
    owner = hint if isinstance(hint, type) else type(hint)
    return (
        owner.__module__.partition(".")[0] in _FOREIGN
        or "__pydantic_core_schema__" in vars(owner)
        or hasattr(owner, "__get_pydantic_core_schema__")
    )


def _all_hints(annotation: Any) -> Iterator[Any]:
    seen: set[Any] = set()
    waiting: list[Any] = [annotation]
    while waiting:
        hint = waiting.pop()
        yield hint
        waiting += [*get_args(hint), *getattr(hint, "__metadata__", ())]
        if isinstance(hint, NewType):
            waiting.append(hint.__supertype__)
        record = record_of(hint)
        if record is not None and record not in seen:
            seen.add(record)
            waiting += get_type_hints(record, include_extras=True).values()
