"""Payloads of structs, dataclasses, TypedDicts and typed containers."""

from __future__ import annotations

import datetime as dt
import enum
import math
import threading
import typing
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NewType, NotRequired, TypedDict, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests._support.refused_fields import refused_fields

from faena.codec import codec_for
from faena.errors import ConfigError, PayloadError

T = TypeVar("T")
OrgId = NewType("OrgId", str)


class Kind(enum.Enum):
    A = "a"
    B = "b"


class Item(msgspec.Struct):
    price: int
    name: str = "thing"


class Invoice(msgspec.Struct, rename="camel"):
    invoice_id: int
    items: list[Item]
    kind: Kind = Kind.A
    note: str | None = None
    extra: dict[str, Any] = {}


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    a: Annotated[int, msgspec.Meta(gt=0)]


class Pair(msgspec.Struct, array_like=True):
    left: int
    right: int


class Box(msgspec.Struct, Generic[T]):
    content: T
    others: list[T]


@dataclass
class Address:
    street: str
    number: float = 0.0


@dataclass(frozen=True)
class Person:
    name: str
    org: OrgId
    addresses: list[Address] = field(default_factory=list)
    born: dt.date | None = None

    def __post_init__(self) -> None:
        if self.name == "nobody":
            raise ValueError("nobody is not a name")


@dataclass(eq=False)
class Plainly:
    x: int
    anything: Any = None


class Row(TypedDict):
    id: int
    label: NotRequired[str]


def test_a_struct_and_the_dict_it_could_be_made_from_have_the_same_bytes() -> None:
    codec = codec_for(Invoice)
    invoice = Invoice(7, [Item(5)])
    raw = codec.encode(invoice)
    assert raw == codec.encode({"invoiceId": 7, "items": [{"price": 5}]})
    assert codec.decode(raw) == invoice


def test_a_dataclass_and_the_dict_it_could_be_made_from_have_the_same_bytes() -> None:
    codec = codec_for(Person)
    person = Person("ana", OrgId("o"), [Address("x", 1.5)], dt.date(2000, 1, 2))
    raw = codec.encode(person)
    given = {"name": "ana", "org": "o", "born": "2000-01-02"}
    assert raw == codec.encode({**given, "addresses": [{"street": "x", "number": 1.5}]})
    assert codec.decode(raw) == person
    assert codec.check(person) == person


def test_a_typed_dict_comes_back_with_its_optional_keys() -> None:
    codec = codec_for(Row)
    assert codec.decode(codec.encode({"id": 1})) == {"id": 1}
    assert codec.decode(codec.encode({"id": 1, "label": "x"})) == {"id": 1, "label": "x"}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 2**80),
        (str, "a\x00b"),
        (type(None), None),
        (bool, True),
        (float, 1.5),
        (bytes, b"\x00\xff"),
        (list[int], []),
        (dict[str, int], {}),
        (dict[int, str], {1: "x"}),
        (dict[str, list[Item]], {"a": [Item(1)]}),
        (list[Address], [Address("x")]),
        (tuple[int, str], (1, "x")),
        (tuple[int, ...], (1, 2)),
        (set[int], {1, 2}),
        (Item | None, None),
        (Item | None, Item(1)),
        (int | str, "x"),
        (Kind, Kind.B),
        (Literal["a", 1], "a"),
        (uuid.UUID, uuid.UUID(int=5)),
        (Decimal, Decimal("1.10")),
        (dt.datetime, dt.datetime(2025, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)),
        (OrgId, "o"),
        (Pair, Pair(1, 2)),
        (Box[int], Box(1, [2])),
        (typing.Dict, {"a": 1}),  # noqa: UP006 - the old name
        (typing.List[int], [1]),  # noqa: UP006 - the old name
        (list, [1, {"a": None}]),
        (dict, {"a": []}),
    ],
)
def test_a_value_of_the_type_comes_back_equal_and_of_the_same_type(
    annotation: Any, value: Any
) -> None:
    codec = codec_for(annotation)
    back = codec.decode(codec.encode(value))
    assert (back, type(back)) == (value, type(value))


def test_every_bad_field_of_a_dict_is_listed_with_its_path() -> None:
    given = {
        "items": [{"price": 1}, {"price": "x"}, {"name": 5}],
        "kind": "zebra",
        "note": 5,
        "extra": {"tags": {"t"}, "n": math.nan},
    }
    assert refused_fields(Invoice, given) == {
        "invoiceId": "is required",
        "items[1].price": "expected int, got str",
        "items[2].price": "is required",
        "items[2].name": "expected str, got int",
        "kind": "is not one of the allowed values",
        "note": "expected str | null, got int",
        "extra.tags": "is of type set, which JSON cannot represent exactly",
        "extra.n": "is nan, which is not a JSON number",
    }


def test_every_bad_field_of_an_instance_is_listed_with_its_path() -> None:
    wrong: Any = "x"
    invoice = Invoice(wrong, [Item(1), Item(wrong)], note=wrong, extra={"a": object()})
    assert refused_fields(Invoice, invoice) == {
        "invoiceId": "expected int, got str",
        "items[1].price": "expected int, got str",
        "extra.a": "is of type object, which JSON cannot represent exactly",
    }


def test_every_bad_field_of_stored_bytes_is_listed_with_its_path() -> None:
    with pytest.raises(PayloadError) as refused:
        codec_for(list[Person]).decode(b'[{"name":5,"addresses":[{"street":null}]},7]')
    assert dict(refused.value.fields) == {
        "[0].name": "expected str, got int",
        "[0].org": "is required",
        "[0].addresses[0].street": "expected str, got null",
        "[1]": "expected object, got int",
    }
    assert refused.value.op == "decode"
    assert str(refused.value).startswith("payload must be list[")


@pytest.mark.parametrize(
    ("annotation", "value", "fields"),
    [
        (int, "5", {"$": "expected int, got str"}),
        (int, True, {"$": "expected int, got bool"}),
        (float, math.nan, {"$": "is nan, which is not a JSON number"}),
        (list[float], [1, math.inf], {"[1]": "is inf, which is not a JSON number"}),
        (Address, Address("x", 2**60 + 1),
         {"number": "is a whole number that a float cannot represent exactly"}),
        (str, "\ud800", {"$": "has an unpaired surrogate, which UTF-8 cannot encode"}),
        (dict[str, int], {5: 1}, {"$": "has a bad key: expected str, got int"}),
        (dict[str, int], {"a": "x", "b c": "y"},
         {"a": "expected int, got str", "['b c']": "expected int, got str"}),
        (dict, {5: 1}, {"$": "has a key of type int, which must be str"}),
        (list, [{1}], {"[0]": "is of type set, which JSON cannot represent exactly"}),
        (tuple[int, Any], (1, {2}), {"[1]": "is of type set, which JSON cannot represent exactly"}),
        (tuple[int, str], ("x", 5),
         {"[0]": "expected int, got str", "[1]": "expected str, got int"}),
        (tuple[int, str], (1,), {"$": "expected array of length 2, got 1"}),
        (Strict, {"a": 0, "b": 1, "c": 2},
         {"a": "expected int >= 1", "b": "is unknown", "c": "is unknown"}),
        (Row, 5, {"$": "expected object, got int"}),
        (Row, {"label": 5}, {"id": "is required", "label": "expected str, got int"}),
        (Item | None, {"price": None}, {"price": "expected int, got null"}),
        (Person, {"name": "nobody", "org": "o"}, {"$": "nobody is not a name"}),
        (Pair, [1, "x"], {"[1]": "expected int, got str"}),
        (Box[int], {"content": "x", "others": [1, "y"]},
         {"content": "expected int, got str", "others[1]": "expected int, got str"}),
        (Plainly, Plainly(1, anything={1}),
         {"anything": "is of type set, which JSON cannot represent exactly"}),
        (Literal["a", "b"], "c", {"$": "is not one of the allowed values"}),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_field_by_field(
    annotation: Any, value: Any, fields: dict[str, str]
) -> None:
    assert refused_fields(annotation, value) == fields


def test_a_class_without_equality_is_still_carried() -> None:
    codec = codec_for(Plainly)
    assert vars(codec.decode(codec.encode(Plainly(3, [1])))) == {"x": 3, "anything": [1]}


def test_bytes_that_are_no_json_are_refused() -> None:
    with pytest.raises(PayloadError, match=r"\$ input data was truncated"):
        codec_for(Item).decode(b'{"price":')


@pytest.mark.parametrize(
    "annotation",
    [
        threading.Thread,
        list[threading.Thread],
        dict[str, type],
        Item | Address,
        "Missing",
        list["Gone"],  # noqa: F821 - that is the point
    ],
)
def test_a_type_that_json_cannot_carry_is_refused_when_it_is_named(annotation: Any) -> None:
    with pytest.raises(ConfigError, match="payload type must be"):
        codec_for(annotation)


def test_a_dataclass_with_an_unknown_name_is_refused_when_it_is_named() -> None:
    @dataclass
    class Lost:
        x: Nowhere  # noqa: F821 # pyright: ignore[reportUndefinedVariable]

    with pytest.raises(ConfigError, match="payload type must use defined names only"):
        codec_for(Lost)


@given(
    st.builds(
        Invoice,
        st.integers(),
        st.lists(st.builds(Item, st.integers(), st.text()), max_size=3),
        st.sampled_from(Kind),
        st.none() | st.text(),
        st.dictionaries(
            st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        ),
    )
)
def test_any_struct_comes_back_as_it_was(invoice: Invoice) -> None:
    codec = codec_for(Invoice)
    assert codec.decode(codec.encode(invoice)) == invoice
