"""A JSON Schema as a jsonpath, for payloads that fit at a glance.

PostgreSQL reads a schema in a procedural language, field by field: about 30 µs each. A jsonpath is
one test in C. It is true only for payloads that fit; whatever it does not cover, such as formats,
patterns or types that contain themselves, is left to the reading of the schema, and so is every
payload for which it is not true. It takes 1.0 for a whole number, so SQL does not ask it about
payloads with such text (`fits_at_a_glance`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from faena.codec.strict_schema import WHOLE

_LONGEST: Final = 8000
_DEEPEST: Final = 8
_NOTES: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "$defs", "$comment", "$schema"}
)
_KNOWN: Final = _NOTES | {
    "$ref",
    "type",
    "format",
    "enum",
    "const",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minimum",
    "maximum",
}
_OF_FIELDS: Final = frozenset({"properties", "required", "additionalProperties"})
_PLAIN: Final = ("string", "boolean", "null", "number", "object", "array")


class _Uncovered(Exception):
    """The schema says something that the path does not."""


def quick_schema(schema: Mapping[str, Any] | None) -> str | None:
    """The path, for a JSON Schema; None if it would not be sound, or not quick."""
    if schema is None:
        return "true"
    try:
        path = _test(schema, schema, "$", 0)
    except _Uncovered:
        return None
    return path if len(path) <= _LONGEST else None


def _test(root: Mapping[str, Any], schema: Any, at: str, depth: int) -> str:
    if schema is True or schema == {}:
        return f"exists({at})"
    if not isinstance(schema, Mapping) or set(schema) - _KNOWN or depth > _DEEPEST:  # pyright: ignore[reportUnknownArgumentType] - any JSON
        raise _Uncovered
    if schema.get("format", WHOLE) != WHOLE:
        raise _Uncovered
    tests = [make(root, schema, at, depth) for word, make in _TESTS.items() if word in schema]
    if _OF_FIELDS & set(schema):  # pyright: ignore[reportUnknownArgumentType]
        tests.append(_fields(root, schema, at, depth))
    return _all(tests) if tests else f"exists({at})"


def _ref(root: Mapping[str, Any], schema: Mapping[str, Any], at: str, depth: int) -> str:
    _, _, name = str(schema["$ref"]).rpartition("#/$defs/")
    found = root.get("$defs", {}).get(name)
    if found is None:
        raise _Uncovered
    return _test(root, found, at, depth + 1)


def _type(_root: Mapping[str, Any], schema: Mapping[str, Any], at: str, _depth: int) -> str:
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return _any([_one_type(str(one), at) for one in types])


def _one_type(name: str, at: str) -> str:
    if name == "integer":
        return f'({at}.type() == "number" && {at}.floor() == {at})'
    if name not in _PLAIN:
        raise _Uncovered
    return f'{at}.type() == "{name}"'


def _enum(_root: Mapping[str, Any], schema: Mapping[str, Any], at: str, _depth: int) -> str:
    return _any([_is(at, one) for one in schema["enum"]])


def _const(_root: Mapping[str, Any], schema: Mapping[str, Any], at: str, _depth: int) -> str:
    return _is(at, schema["const"])


def _is(at: str, value: Any) -> str:
    """An array is compared by its items, so the type is looked at first."""
    names = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    name = names.get(cast("type[Any]", type(value)))
    return f'({at}.type() == "{name}" && {at} == {_word(value)})'


def _any_of(root: Mapping[str, Any], schema: Mapping[str, Any], at: str, depth: int) -> str:
    return _any([_test(root, one, at, depth + 1) for one in schema["anyOf"]])


def _fields(root: Mapping[str, Any], schema: Mapping[str, Any], at: str, depth: int) -> str:
    _check_type(schema, "object")
    tests = [f'{at}.type() == "object"']
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        inside = f"{at}.{_word(name)}"
        test = _test(root, field, inside, depth + 1)
        tests.append(test if name in required else f"(!exists({inside}) || {test})")
    tests += [
        f"exists({at}.{_word(name)})"
        for name in required
        if name not in schema.get("properties", {})
    ]
    rest = schema.get("additionalProperties", True)
    if rest is not True:
        others = [f"@.key != {_word(name)}" for name in schema.get("properties", {})]
        if rest is not False:
            others.append(_wrong(_test(root, rest, "@.value", depth + 1)))
        which = f" ? ({_all(others)})" if others else ""
        tests.append(f"!exists({at}.keyvalue(){which})")
    return _all(tests)


def _items(root: Mapping[str, Any], schema: Mapping[str, Any], at: str, depth: int) -> str:
    """Filters look into arrays of arrays, so those are left to the schema."""
    _check_type(schema, "array")
    inside = _wrong(_test(root, schema["items"], "@", depth + 1))
    return (
        f'({at}.type() == "array" && !exists({at}[*].type() ? (@ == "array"))'
        f" && !exists({at}[*] ? ({inside})))"
    )


def _wrong(test: str) -> str:
    """What is not known to be true: a filter drops what it does not know."""
    return f"(!({test}) || (({test}) is unknown))"


def _check_type(schema: Mapping[str, Any], name: str) -> None:
    """Words about fields or items bind only values that have them: others fit without."""
    if schema.get("type") != name:
        raise _Uncovered


def _bound(word: str, sign: str) -> Any:
    def test(_root: Mapping[str, Any], schema: Mapping[str, Any], at: str, _depth: int) -> str:
        if schema.get("type") not in {"integer", "number"}:
            raise _Uncovered
        return f"{at} {sign} {_word(schema[word])}"

    return test


def _word(value: Any) -> str:
    """A string, number, true, false or null as jsonpath writes it: as JSON does."""
    is_number = isinstance(value, int | float) and value >= 0
    if not (value is None or isinstance(value, str | bool) or is_number):
        raise _Uncovered
    if isinstance(value, str) and not (value.isascii() and value.isprintable()):
        raise _Uncovered
    return msgspec.json.encode(value).decode()


def _all(tests: list[str]) -> str:
    return tests[0] if len(tests) == 1 else f"({' && '.join(tests)})"


def _any(tests: list[str]) -> str:
    if not tests:
        raise _Uncovered
    return tests[0] if len(tests) == 1 else f"({' || '.join(tests)})"


_TESTS: Final = {
    "$ref": _ref,
    "type": _type,
    "enum": _enum,
    "const": _const,
    "anyOf": _any_of,
    "items": _items,
    "minimum": _bound("minimum", ">="),
    "maximum": _bound("maximum", "<="),
}
