"""JSON Schema of what the API answers: of the fields that `View.to_dict()` writes."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import textwrap
import types
import typing
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from faena.values.view import View
from faena.web.reading.reading import Many, Some

Schema = dict[str, Any]
PLACE: Final = "#/components/schemas/"
_PLAIN: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
}
_ARRAYS: Final = (list, tuple, set, frozenset, Sequence, AbstractSet)


class Schemas:
    """Schemas of types; those of classes are components that others refer to."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        self._named: dict[str, Any] = {}

    def of(self, kind: Any) -> Schema:
        """The schema of a type, or of Many or Some of one."""
        if isinstance(kind, Many):
            return _page(self.of(kind.of))
        if isinstance(kind, Some):
            return self._some(kind)
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        origin = get_origin(kind)
        if origin is typing.Annotated:
            return self.of(get_args(kind)[0])
        if origin is not None:
            return self._generic(origin, get_args(kind))
        return self._class(kind) if isinstance(kind, type) else {}

    def _generic(self, origin: Any, parts: tuple[Any, ...]) -> Schema:
        if origin in {Union, types.UnionType}:
            return {"anyOf": [self.of(one) for one in parts]}
        if origin is Literal:
            return {"enum": list(parts)}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(parts[1])}
        if isinstance(origin, type) and issubclass(origin, _ARRAYS):
            return self._array(origin, parts)
        return self.of(origin)

    def _array(self, origin: type, parts: tuple[Any, ...]) -> Schema:
        if origin is tuple and parts[-1] is not Ellipsis:
            return {"type": "array", "prefixItems": [self.of(one) for one in parts]}
        return {"type": "array", "items": self.of(parts[0])}

    def _class(self, kind: type) -> Schema:
        if issubclass(kind, Enum):
            return {"enum": [one.value for one in kind]}
        if dataclasses.is_dataclass(kind) and "__str__" in vars(kind):
            return {"type": "string"}
        if issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind) or _is_named(kind):
            return self._component(kind)
        return {}

    def _component(self, kind: type) -> Schema:
        name = kind.__name__
        if self._named.setdefault(name, kind) is not kind:
            name = f"{kind.__module__.rpartition('.')[2].title()}{name}"
            self._named[name] = kind
        if name not in self.components:
            self.components[name] = {}  # it may contain itself
            self.components[name] = self._object(kind)
        return {"$ref": f"{PLACE}{name}"}

    def _object(self, kind: type) -> Schema:
        told = docs_of(kind)
        properties: dict[str, Schema] = {}
        for name, hint in _fields(kind).items():
            schema = self.of(hint)
            properties[name] = schema | {"description": told[name]} if name in told else schema
        return {
            "type": "object",
            "description": inspect.getdoc(kind) or "",
            "properties": properties,
            "required": list(properties),
        }

    def _some(self, kind: Some) -> Schema:
        name = f"{'Some' if kind.hidden and not kind.more else 'Shown'}{kind.of.__name__}"
        if name not in self.components:
            whole = self._object(kind.of)
            whole["properties"] |= {name: {} for name in kind.more}
            whole["required"] = [one for one in whole["required"] if one not in kind.hidden]
            self.components[name] = whole
        return {"$ref": f"{PLACE}{name}"}


def _page(of: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": of},
            "cursor": {
                "type": ["string", "null"],
                "description": "Where the next page begins; null at the end.",
            },
        },
        "required": ["items", "cursor"],
    }


def _is_named(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _fields(kind: type) -> dict[str, Any]:
    """The names that its dict has, with their types."""
    hints = get_type_hints(kind)
    if issubclass(kind, msgspec.Struct):
        names = list(kind.__struct_fields__)
    elif dataclasses.is_dataclass(kind):
        names = [one.name for one in dataclasses.fields(kind) if one.init]
    else:
        names = list(kind.__annotations__)
    found = {name: _bound(hints[name]) for name in names}
    if issubclass(kind, View):
        found = {name: hint for name, hint in found.items() if name not in kind.apart}
        return found | {name: _returned(kind, name) for name in kind.also}
    if _is_named(kind) and "__str__" in vars(kind):
        found["text"] = str
    return found


def _bound(hint: Any) -> Any:
    return Any if isinstance(hint, TypeVar) else hint


def _returned(kind: type, name: str) -> Any:
    return get_type_hints(getattr(kind, name).fget)["return"]


def docs_of(kind: type) -> Mapping[str, str]:
    """The sentences below the fields and in the properties of a class, if its source is there."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if not one.__module__.startswith("faena."):
            continue
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        except (OSError, TypeError, SyntaxError, ValueError):
            continue
        if isinstance(tree, ast.ClassDef):
            found |= _sentences(tree.body)
    return found


def _sentences(body: Sequence[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, text in itertools.pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[name] = inspect.cleandoc(words).replace("\n", " ")
            case _:
                pass
    for one in body:
        if isinstance(one, ast.FunctionDef) and (words := ast.get_docstring(one)):
            found[one.name] = words.replace("\n", " ")
    return found
