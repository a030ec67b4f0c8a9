"""Payloads are checked in SQL as JSON Schema has it, and as workers read them: beside a library and
beside the codecs, on schemas of real types."""

from __future__ import annotations

import enum
import json
import os
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
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
from tests._support.postgres import shared
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
    cluster, name = shared(), f"schemas_{os.getpid()}"
    with psycopg.connect(cluster.create(name, "migrated"), autocommit=True) as connection:
        yield connection
    cluster.drop(name)


def errors(connection: Any, schema: Any, value: Any) -> list[str]:
    found = connection.execute(
        "SELECT faena.schema_errors(%(schema)s, %(schema)s, %(value)s, '')",
        {"schema": json.dumps(schema), "value": json.dumps(value)},
    )
    return [row[0] for row in found.fetchall()]


SCHEMAS = [codec_for(one).schema() for one in TYPES]


@searching(400)
@given(which=st.sampled_from(range(len(TYPES))), value=trees)
def test_what_fits_in_sql_fits_by_the_library_and_is_read_by_workers(
    checker: Any, which: int, value: Any
) -> None:
    schema = SCHEMAS[which]
    assert schema is not None
    wanted = [*jsonschema.Draft202012Validator(schema).iter_errors(value)]
    fits = not wanted and is_readable(TYPES[which], json.dumps(value))
    assert (errors(checker, schema, value) == []) == fits


def is_readable(type_: Any, raw: str) -> bool:
    try:
        codec_for(type_).decode(raw.encode())
    except PayloadError:
        return False
    return True


TEXTS = (
    *("", "1", "1.", ".5", ".", "1e5", "e5", "-1", "nan", "sNaN2", "Infinity", "tomorrow", "a\n"),
    *("1_000", "1_000.5_0", "1__0", "1_"),
    *("AAAA", "AA==", "AAA=", "AAA", "A===", "AA=A", "A-A_", "AAAA\n"),
    *("2026-01-01", "2026-01-01T00:00:00", "2026-01-01 00:00:00z", "2026-01-01T00:00:00.1234567Z"),
    *("2026-01-01T00:00:00+0100", "2026-01-01t00:00:00-23:59", "2026-01-01T00:00:00+24:00"),
    *("2026-01-01T00:00", "2026-01-01T24:00:00", "2026-01-01T23:59:60Z", "2026-02-30T00:00:00"),
    *(
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "10000-01-01T00:00:00",
        "2026-01-01T00:00:00.",
    ),
    *("12:00", "12:00:00", "12:00:00Z", "12:00:00.5+02:00", "24:00:00", "23:59:60"),
    *("P", "P1D", "P1DT", "PT", "PT1H", "-PT1S", "+p1dt1h1m1.5s", "P1W", "P1Y", "P1M", "P1.5D"),
    *("PT1.5H", "PT1.5H1M", "PT1M1H", "PT1H30S", "PT.5S", "PT1.S", "P1DT1.5M", "P1.5DT1H"),
)
TEXT_TYPES: dict[str, Any] = {
    "datetime": datetime,
    "with a zone": Annotated[datetime, msgspec.Meta(tz=True)],
    "without a zone": Annotated[datetime, msgspec.Meta(tz=False)],
    "time": time,
    "time with a zone": Annotated[time, msgspec.Meta(tz=True)],
    "date": date,
    "duration": timedelta,
    "decimal": Decimal,
    "bytes": bytes,
}


@pytest.mark.parametrize("name", TEXT_TYPES)
def test_sql_takes_the_texts_that_workers_read(checker: Any, name: str) -> None:
    type_ = TEXT_TYPES[name]
    schema = codec_for(type_).schema()
    taken = [one for one in TEXTS if errors(checker, schema, one) == []]
    assert taken == [one for one in TEXTS if is_readable(type_, json.dumps(one))]


@dataclass
class Visit:
    at: datetime
    until: datetime | None
    of: list[Visit]
    days: dict[str, tuple[date, timedelta]]
    photo: bytes = b""
    stars: Literal[1, 2, 3] = 1


VISIT = {"at": "2026-01-01T00:00:00", "until": None, "of": [], "days": {}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at": "soon"}, "at must be a datetime, got 'soon'"),
        ({"until": "soon"}, "until must be a datetime, got 'soon'"),
        ({"of": [{**VISIT, "at": "soon"}]}, "of[0].at must be a datetime, got 'soon'"),
        (
            {"days": {"a": ["2026-01-01", "1h"]}},
            "days.a[1] must be a duration such as P1DT2H, got '1h'",
        ),
        ({"photo": "?"}, "photo must be a base64 string, got '?'"),
        ({"stars": 2.0}, "stars must be a whole number without a point, got 2.0"),
    ],
)
def test_a_text_that_no_worker_reads_is_found_wherever_it_is(
    checker: Any, change: dict[str, Any], words: str
) -> None:
    schema = codec_for(Visit).schema()
    assert errors(checker, schema, VISIT) == []
    assert errors(checker, schema, {**VISIT, **change}) == [words]


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
            "$ must be a datetime with a time zone, got 'tomorrow'",
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
