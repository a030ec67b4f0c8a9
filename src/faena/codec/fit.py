"""Whether values of one type, as JSON, can be read as another: what is certainly wrong is found
when tasks are declared. What cannot be told is left to decoding."""

from __future__ import annotations

from typing import Any, Final

from msgspec import inspect

from faena.codec.type_hint import name_of

_KINDS: Final[dict[type[inspect.Type], str]] = {
    inspect.BoolType: "bool",
    inspect.IntType: "int",
    inspect.FloatType: "float",
    inspect.StrType: "str",
    inspect.ListType: "array",
    inspect.DictType: "object",
    inspect.TypedDictType: "object",
    inspect.DataclassType: "object",
}


def unfit(given: Any, wanted: Any) -> str | None:
    """Why no value of `given` can be read as `wanted`; None if one may be."""
    ours, theirs = _info(given), _info(wanted)
    if ours is None or theirs is None:
        return None
    kinds = _kind(ours), _kind(theirs)
    is_known = None not in kinds and kinds != ("int", "float")
    if is_known and kinds[0] != kinds[1]:
        return f"it takes {name_of(wanted)}, and the task {name_of(given)}"
    names, needed = _names(ours), _needed(theirs)
    missing = sorted(needed - names) if names is not None and kinds[1] == "object" else []
    if missing:
        return f"it takes {name_of(wanted)}, and {name_of(given)} has no {', '.join(missing)}"
    return None


def _info(annotation: Any) -> inspect.Type | None:
    try:
        return inspect.type_info(annotation)
    except Exception:  # noqa: BLE001 - whatever a user's annotation is
        return None


def _kind(info: inspect.Type) -> str | None:
    if isinstance(info, inspect.StructType):
        return "array" if info.array_like else "object"
    if isinstance(info, inspect.CustomType) and hasattr(info.cls, "model_validate_json"):
        return "object"
    return _KINDS.get(type(info))


def _fields(info: inspect.Type) -> tuple[inspect.Field, ...] | None:
    is_record = isinstance(info, inspect.StructType | inspect.DataclassType | inspect.TypedDictType)
    return info.fields if is_record else None


def _names(info: inspect.Type) -> set[str] | None:
    """What its objects have; None if that may be anything."""
    fields = _fields(info)
    return None if fields is None else {one.encode_name for one in fields}


def _needed(info: inspect.Type) -> set[str]:
    return {one.encode_name for one in _fields(info) or () if one.required}
