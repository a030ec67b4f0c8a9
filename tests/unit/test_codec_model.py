"""Payloads of pydantic models, alone and inside other types."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, PrivateAttr, SecretStr
from tests._support.refused_fields import refused_fields

from faena.codec import codec_for
from faena.errors import ConfigError, PayloadError


class Line(BaseModel):
    price: int
    name: str = "thing"


class Order(BaseModel):
    order_id: int = Field(alias="orderId")
    lines: list[Line]
    at: dt.datetime | None = None
    ratio: float = 1.0
    anything: Any = None
    _seen: int = PrivateAttr(default=0)


@dataclass
class Envelope:
    line: Line
    count: int


@dataclass
class Bounded:
    n: Annotated[int, Field(gt=0)]


@pydantic.dataclasses.dataclass
class Checked:
    n: int = Field(gt=0)


def test_a_model_and_the_dict_it_could_be_made_from_have_the_same_bytes() -> None:
    codec = codec_for(Order)
    order = Order(orderId=7, lines=[Line(price=5)], at=dt.datetime(2025, 1, 2, tzinfo=dt.UTC))
    raw = codec.encode(order)
    assert raw == codec.encode(
        {"orderId": 7, "lines": [{"price": 5}], "at": "2025-01-02T00:00:00Z"}
    )
    assert codec.decode(raw) == order


def test_every_bad_field_of_a_dict_is_listed_with_its_path() -> None:
    fields = refused_fields(Order, {"lines": [{"price": 1}, {"price": "x"}], "ratio": "much"})
    assert set(fields) == {"orderId", "lines[1].price", "ratio"}
    assert fields["orderId"] == "field required"


def test_an_instance_that_was_spoilt_after_its_birth_is_refused() -> None:
    order = Order(orderId=7, lines=[Line(price=5)])
    order.lines[0].price = "x"  # pyright: ignore[reportAttributeAccessIssue]
    order.ratio = math.nan
    assert set(refused_fields(Order, order)) == {"lines[0].price", "ratio"}


def test_every_bad_field_of_stored_bytes_is_listed_with_its_path() -> None:
    with pytest.raises(PayloadError) as refused:
        codec_for(list[Line]).decode(b'[{"price":1},{"price":null,"name":5}]')
    assert {path for path, _ in refused.value.fields} == {"[1].price", "[1].name"}
    assert refused.value.op == "decode"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[Line], [Line(price=1)]),
        (dict[str, Line], {"a": Line(price=1)}),
        (Line | None, None),
        (Envelope, Envelope(Line(price=1), 2)),
        (Checked, Checked(n=1)),
        (Annotated[int, Field(gt=0)], 5),
    ],
)
def test_types_that_contain_pydantic_come_back_equal(annotation: Any, value: Any) -> None:
    codec = codec_for(annotation)
    back = codec.decode(codec.encode(value))
    assert (back, type(back)) == (value, type(value))


@pytest.mark.parametrize("annotation", [Bounded, Checked])
def test_constraints_written_for_pydantic_are_obeyed(annotation: Any) -> None:
    assert refused_fields(annotation, {"n": 0}) == {"n": "input should be greater than 0"}


def test_private_attributes_do_not_travel_and_do_not_matter() -> None:
    codec = codec_for(Order)
    order = Order(orderId=7, lines=[])
    order._seen = 5
    assert codec.decode(codec.encode(order))._seen == 0


def test_a_field_that_would_come_back_changed_is_refused_by_name() -> None:
    class Hidden(BaseModel):
        token: SecretStr
        free: Any = None

    fields = refused_fields(Hidden, {"token": "s3cret", "free": {1}})
    assert fields == {
        "token": "changes when it is encoded and decoded",
        "free": "changes when it is encoded and decoded",
    }


def test_a_part_that_nothing_can_serialise_is_refused() -> None:
    fields = refused_fields(Order, Order(orderId=7, lines=[], anything=object()))
    assert "unable to serialize" in fields["$"]


def test_a_model_that_contains_itself_is_refused() -> None:
    order = Order(orderId=7, lines=[])
    order.anything = order
    assert "$" in refused_fields(Order, order)


def test_bytes_that_are_no_json_are_refused() -> None:
    with pytest.raises(
        PayloadError, match=r"payload must be Line, got 1 bad field: \$ invalid JSON"
    ):
        codec_for(Line).decode(b"{")


def test_a_model_inside_a_struct_is_refused_when_it_is_named() -> None:
    class Mixed(msgspec.Struct):
        line: Line

    with pytest.raises(ConfigError, match="payload type must be one that pydantic can read"):
        codec_for(Mixed)


def test_a_type_without_pydantic_never_imports_it() -> None:
    program = (
        "import sys; from faena.codec import codec_for; codec_for(dict[str, int]).encode({'a': 1});"
        "sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@given(
    st.integers(),
    st.lists(st.builds(Line, price=st.integers(), name=st.text()), max_size=3),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_model_comes_back_as_it_was(order_id: int, lines: list[Line], ratio: float) -> None:
    codec = codec_for(Order)
    order = Order(orderId=order_id, lines=lines, ratio=ratio)
    assert codec.decode(codec.encode(order)) == order
