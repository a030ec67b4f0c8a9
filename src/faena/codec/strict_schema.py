"""A JSON Schema that says all that msgspec checks, for producers that have nothing else.

JSON Schema takes 1.0 for an integer and has no format for instants without a time zone; msgspec
reads neither 1.0 as an `int` nor any string as a `datetime`. Formats of our own say so: a reader
that does not know them takes more, as the standard has it.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec
from msgspec import inspect

_Node = dict[str, Any]

WHOLE: Final = "int"
_ZONES: Final = {None: "", True: " with a time zone", False: " without a time zone"}
_FIELDS: Final = (
    inspect.StructType,
    inspect.DataclassType,
    inspect.TypedDictType,
    inspect.NamedTupleType,
)
_ITEMS: Final = (
    inspect.ListType,
    inspect.SetType,
    inspect.FrozenSetType,
    inspect.VarTupleType,
    inspect.CollectionType,
)


def strict_schema(hint: Any) -> _Node:
    """That of a type that msgspec reads; `TypeError` where a part of it has none."""
    schema = msgspec.json.schema(hint)
    _mark_integers(schema)
    _Strings(schema.get("$defs", {})).mark(schema, inspect.type_info(hint))
    return schema


def _mark_integers(node: Any) -> None:
    if isinstance(node, list):
        for one in cast("list[Any]", node):
            _mark_integers(one)
    elif isinstance(node, dict):
        found = cast("_Node", node)
        for name, one in found.items():
            if name not in {"enum", "const", "default", "examples"}:
                _mark_integers(one)
        if found.get("type") == "integer" or _are_integers(found.get("enum")):
            found["format"] = WHOLE


def _are_integers(values: Any) -> bool:
    return isinstance(values, list) and all(type(one) is int for one in cast("list[Any]", values))


class _Strings:
    """Walks a schema beside the type that it was made of, and says which strings it means."""

    def __init__(self, definitions: _Node) -> None:
        self._definitions, self._seen = definitions, set[str]()

    def mark(self, node: Any, info: inspect.Type) -> None:
        """Nodes that are not as expected are left as they are."""
        if not isinstance(node, dict):
            return
        found = cast("_Node", node)
        name = str(found.get("$ref", "")).rpartition("/")[2]
        if isinstance(info, inspect.Metadata):
            self.mark(found, info.type)
        elif name:
            if name in self._definitions and name not in self._seen:
                self._seen.add(name)
                self.mark(self._definitions[name], info)
        elif "anyOf" in found:
            self._mark_union(found["anyOf"], info)
        elif (words := _format(info)) is not None and found.get("type") == "string":
            found["format"] = words
        else:
            self._mark_parts(found, info)

    def _mark_union(self, nodes: list[_Node], info: inspect.Type) -> None:
        """msgspec tells its types apart by how they look in JSON, so there is one of each look."""
        for one in info.types if isinstance(info, inspect.UnionType) else (info,):
            for node in nodes:
                if "anyOf" in node:
                    self._mark_union(node["anyOf"], one)
                elif self._is_of(node, one):
                    self.mark(node, one)

    def _is_of(self, node: _Node, info: inspect.Type) -> bool:
        while isinstance(info, inspect.Metadata):
            info = info.type
        if isinstance(info, _FIELDS):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            return self._definitions.get(name, {}).get("title") == info.cls.__name__
        looks = {"array": (*_ITEMS, inspect.TupleType), "object": (inspect.DictType,)}
        wanted = looks.get(node.get("type", ""))
        return isinstance(info, wanted) if wanted else _format(info) is not None

    def _mark_parts(self, node: _Node, info: inspect.Type) -> None:
        if isinstance(info, _FIELDS):
            listed = node.get("prefixItems", ())
            named = node.get("properties", {})
            for place, field in enumerate(info.fields):
                self.mark(named.get(field.encode_name), field.type)
                if place < len(listed):
                    self.mark(listed[place], field.type)
        elif isinstance(info, _ITEMS):
            self.mark(node.get("items"), info.item_type)
        elif isinstance(info, inspect.TupleType):
            for one, part in zip(node.get("prefixItems", ()), info.item_types, strict=False):
                self.mark(one, part)
        elif isinstance(info, inspect.DictType):
            self.mark(node.get("additionalProperties"), info.value_type)


def _format(info: inspect.Type) -> str | None:
    """Of the string that a value is in JSON, as far as JSON Schema has no name for it."""
    match info:
        case inspect.DateTimeType():
            return f"datetime{_ZONES[info.tz]}"
        case inspect.TimeType():
            return f"time of day{_ZONES[info.tz]}"
        case inspect.TimeDeltaType():
            return "duration such as P1DT2H"
        case inspect.BytesType() | inspect.ByteArrayType():
            return "base64 string"
        case _:
            return None
