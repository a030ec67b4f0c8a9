"""Untyped payloads: JSON exactly, or a refusal that names every bad field."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.codec import codec_for
from faena.errors import PayloadError

plain = codec_for(Any)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
def test_every_json_value_comes_back_as_it_was(value: Any) -> None:
    raw = plain.encode(value)
    back = plain.decode(raw)
    assert back == value
    assert repr(back) == repr(value)
    assert plain.encode(back) == raw


@pytest.mark.parametrize(
    "value",
    [2**63 - 1, 2**64, -(2**63) - 1, 10**30, 10**4000, 0.1, 1e308, 5e-324, -0.0, 1.0, [], {}, [[]],
     {"a": {}}, "a\x00b", "\x00", "ñ€😀", "", None, True, {"": 0}, {"\x00": [None]}],
)  # fmt: skip
def test_the_usual_victims_of_other_encodings_survive(value: Any) -> None:
    back = plain.decode(plain.encode(value))
    assert (back, type(back)) == (value, type(value))
    assert math.copysign(1, back) == math.copysign(1, value) if isinstance(value, float) else True


def test_bytes_are_compact_utf_8() -> None:
    assert plain.encode({"a": [1, "ñ"], "b": None}) == '{"a":[1,"ñ"],"b":null}'.encode()


class Colour(enum.Enum):
    RED = 1


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        (math.nan, "$", "is nan, which is not a JSON number"),
        ({"a": [1, math.inf]}, "a[1]", "is inf, which is not a JSON number"),
        ({"a": -math.inf}, "a", "is -inf, which is not a JSON number"),
        ({"a": {1: 2}}, "a", "has a key of type int, which must be str"),
        ({None: 2}, "$", "has a key of type NoneType, which must be str"),
        ({"a b": b"x"}, "['a b']", "is of type bytes, which JSON cannot represent exactly"),
        ({"a": {"b": {1, 2}}}, "a.b", "is of type set, which JSON cannot represent exactly"),
        ([(1, 2)], "[0]", "is of type tuple, which JSON cannot represent exactly"),
        ({"at": dt.datetime(2025, 1, 1)}, "at", "is of type datetime, which JSON cannot"),  # noqa: DTZ001 - refused anyway
        ({"n": decimal.Decimal(1)}, "n", "is of type Decimal, which JSON cannot"),
        ({"c": Colour.RED}, "c", "is of type Colour, which JSON cannot"),
        ({"p": Point(1)}, "p", "is of type Point, which JSON cannot"),
        ({"o": object()}, "o", "is of type object, which JSON cannot"),
        ({"s": "\ud800"}, "s", "has an unpaired surrogate, which UTF-8 cannot encode"),
        ({"\ud800": 1}, "$", "has an unpaired surrogate, which UTF-8 cannot encode"),
        ({"n": 10**5000}, "n", "is a whole number of more than 4300 digits"),
    ],
)
def test_what_json_would_bend_is_refused_with_its_path(value: Any, path: str, reason: str) -> None:
    with pytest.raises(PayloadError) as refused:
        plain.encode(value)
    assert len(refused.value.fields) == 1
    assert refused.value.fields[0][0] == path
    assert refused.value.fields[0][1].startswith(reason)
    assert refused.value.op == "encode"


def test_every_bad_field_is_listed_and_the_message_shows_the_first_five() -> None:
    with pytest.raises(PayloadError) as refused:
        plain.encode({"items": [{"x": {n}} for n in range(7)]})
    assert [path for path, _ in refused.value.fields] == [f"items[{n}].x" for n in range(7)]
    assert str(refused.value).startswith("payload must be JSON, got 7 bad fields: items[0].x is of")
    assert str(refused.value).endswith("; and 2 more")


def test_values_stay_out_of_the_message() -> None:
    with pytest.raises(PayloadError) as refused:
        plain.encode({"password": b"hunter2"})
    assert "hunter2" not in str(refused.value)


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(PayloadError, match=r"\$ is nested too deeply"):
        plain.encode(endless)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"NaN", b"{'a':1}", b"\xff", b"1e400", b'"\xed\xa0\x80"']
)
def test_bytes_that_are_no_json_are_refused(raw: bytes) -> None:
    with pytest.raises(PayloadError, match="payload must be JSON, got 1 bad field") as refused:
        plain.decode(raw)
    assert refused.value.op == "decode"


def test_bytes_nested_beyond_reason_are_refused() -> None:
    with pytest.raises(PayloadError, match="is nested too deeply"):
        plain.decode(b"[" * 100_000)


def test_object_means_anything_too() -> None:
    assert codec_for(object).decode(b'{"a":1}') == {"a": 1}
    assert plain.check({"a": 1}) == {"a": 1}
