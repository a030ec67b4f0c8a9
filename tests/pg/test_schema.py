"""Payloads are checked in SQL as JSON Schema has it: beside a library, on schemas of real types."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import jsonschema
import msgspec
import psycopg
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.codec import codec_for
from faena.errors import PayloadError
from tests._support.postgres import Cluster, shared
from tests._support.search import searching


class Kind(enum.Enum):
    A = "a"
    B = "b"


@dataclass
class Line:
    article: str
    number: Annotated[int, msgspec.Meta(gt=0, le=99)]
    price: float | None = None


@dataclass
class Invoice:
    number: int
    lines: Annotated[list[Line], msgspec.Meta(max_length=3)]
    kind: Kind = Kind.A
    tags: dict[str, int] = field(default_factory=dict)
    pair: tuple[int, str] | None = None


class Address(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    street: Annotated[str, pydantic.Field(min_length=2, max_length=5, pattern="^[a-z]+$")]
    number: Annotated[int, pydantic.Field(ge=1, multiple_of=2)] = 2


class Cat(pydantic.BaseModel):
    type: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    type: Literal["dog"]
    name: str


class Customer(pydantic.BaseModel):
    name: str
    home: Address
    others: list[Address] = []
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="type")] | None = None


TYPES: tuple[Any, ...] = (Invoice, Customer, list[int | str], dict[str, bool], int, str | None)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 120),
    st.sampled_from([0.5, 2.0]),
    st.text("ab", max_size=6),
)
names = st.sampled_from(
    ["number", "lines", "kind", "tags", "pair", "article", "price", "street", "name", "home"]
)
trees = st.recursive(
    st.one_of(leaves, st.sampled_from(["a", "b", "cat", "dog"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def checker() -> Any:
    cluster: Cluster = shared()
    with psycopg.connect(cluster.url("schemas"), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module", autouse=True)
def _database() -> Any:
    cluster = shared()
    cluster.drop("schemas")
    cluster.create("schemas", "migrated")
    yield
    cluster.drop("schemas")


def errors(connection: Any, schema: Any, value: Any) -> list[str]:
    found = connection.execute(
        "SELECT faena.schema_errors(%(schema)s, %(schema)s, %(value)s, '')",
        {"schema": json.dumps(schema), "value": json.dumps(value)},
    )
    return [row[0] for row in found.fetchall()]


SCHEMAS = [codec_for(one).schema() for one in TYPES]


@searching(400)
@given(which=st.sampled_from(range(len(TYPES))), value=trees)
def test_what_fits_in_sql_fits_by_the_library(checker: Any, which: int, value: Any) -> None:
    schema = SCHEMAS[which]
    assert schema is not None
    wanted = [*jsonschema.Draft202012Validator(schema).iter_errors(value)]
    assert bool(errors(checker, schema, value)) == bool(wanted)


@searching(200)
@given(value=st.from_type(Invoice))
def test_what_python_makes_fits(checker: Any, value: Invoice) -> None:
    try:
        raw = codec_for(Invoice).encode(value)
    except PayloadError:
        return
    if b"u0000" not in raw:  # PostgreSQL stores no NUL
        assert errors(checker, SCHEMAS[0], json.loads(raw)) == []


@pytest.mark.parametrize(
    ("type_", "value", "words"),
    [
        (
            Annotated[datetime, msgspec.Meta(tz=True)],
            "tomorrow",
            "$ must be a date-time, got 'tomorrow'",
        ),
        (date, "2026-02-30", "$ must be a date, got '2026-02-30'"),
        (UUID, "x", "$ must be a uuid, got 'x'"),
        (Address, {"street": "abc", "number": 3}, "number must be a multiple of 2, got 3"),
        (Address, {"street": "A"}, "street must have at least 2 characters, got 1"),
        (Address, {"street": "abc", "city": 1}, "city is unknown"),
        (
            Invoice,
            {"number": 1, "lines": [{"article": "a", "number": 0}]},
            "lines[0].number must be greater than 0, got 0",
        ),
    ],
)
def test_each_fault_is_named_with_its_path(
    checker: Any, type_: Any, value: Any, words: str
) -> None:
    assert words in errors(checker, codec_for(type_).schema(), value)
