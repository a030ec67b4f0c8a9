"""A path that finds a payload good must agree with the schema it was made of."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import psycopg
import pytest

from faena.pg.quick_schema import quick_schema

_CHECK = """
    SELECT jsonb_path_match(value, %s::jsonpath, '{}', true),
        ARRAY(SELECT faena.schema_errors(%s::jsonb, %s::jsonb, value, ''))
    FROM jsonb_array_elements(%s::jsonb) value
"""


@dataclass
class Line:
    sku: str
    count: int
    price: float | None = None


@dataclass
class Basket:
    number: int
    kind: Literal["web", "shop"]
    lines: list[Line]
    notes: dict[str, int] = field(default_factory=dict[str, int])
    is_gift: bool = False


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list["Tree"])


_GOOD = {
    "number": 7,
    "kind": "web",
    "lines": [{"sku": "a", "count": 1}, {"sku": "b", "count": 2, "price": 1.5}],
    "notes": {"x": 1},
    "is_gift": True,
}
_PLAIN = [None, True, 0, -3, 1.5, 1e30, "web", ""]
_VALUES = [*_PLAIN, [], {}, [1], ["a"], {"sku": 1}, [[]], [{}], ["web"], [7]]


def _schema(kind: Any) -> dict[str, Any]:
    return msgspec.json.schema(kind)


def _spoilt(dice: random.Random, value: Any) -> Any:
    """The value with something else at a random place."""
    if isinstance(value, dict) and value and dice.random() < 0.8:
        made = dict(value)
        name = dice.choice([*made])
        match dice.randrange(4):
            case 0:
                del made[name]
            case 1:
                made[f"{name}x"] = dice.choice(_VALUES)
            case _:
                made[name] = _spoilt(dice, made[name])
        return made
    if isinstance(value, list) and value and dice.random() < 0.8:
        at = dice.randrange(len(value))
        return [*value[:at], _spoilt(dice, value[at]), *value[at + 1 :]]
    return dice.choice(_VALUES)


_TYPES: dict[str, tuple[Any, Callable[[], Any]]] = {
    "basket": (Basket, lambda: _GOOD),
    "baskets": (list[Basket], lambda: [_GOOD, _GOOD]),
    "mapping": (dict[str, int], lambda: {"a": 1, "b": 2}),
    "closed": (
        msgspec.defstruct("Closed", [("a", int)], forbid_unknown_fields=True),
        lambda: {"a": 1},
    ),
    "either": (int | str | None, lambda: 3),
    "many kinds": (list[int | bool | dict[str, float]], lambda: [1, True, {"a": 1.5}]),
    "any": (Any, lambda: {"a": [1]}),
}


@pytest.mark.parametrize("name", _TYPES)
def test_a_path_is_true_for_nothing_but_what_fits(database: str, name: str) -> None:
    dice, (kind, good) = random.Random(7), _TYPES[name]
    schema = _schema(kind)
    path = quick_schema(schema)
    values = [good(), *_VALUES, *(_spoilt(dice, good()) for _ in range(150))]
    text = msgspec.json.encode(schema).decode()
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            _CHECK, [path, text, text, msgspec.json.encode(values).decode()]
        ).fetchall()
    assert rows[0][0] is True, path
    told = [(one, row[0] is True, row[1] == []) for one, row in zip(values, rows, strict=True)]
    assert [one for one, quick, fits in told if quick and not fits] == []
    assert [one for one, quick, fits in told if fits and not quick] == []


@pytest.mark.parametrize(
    "schema",
    [
        _schema(Tree),
        {"type": "string", "format": "date-time"},
        {"type": "string", "pattern": "^a"},
        {"properties": {"a": {"type": "string"}}},
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"type": "object", "properties": {"ñ\x01": {"type": "string"}}},
        {"type": "number", "minimum": -1},
        {"type": "thing"},
    ],
)
def test_what_a_path_cannot_say_is_read_from_the_schema(schema: dict[str, Any]) -> None:
    assert quick_schema(schema) is None
