"""What scripts pack is read, also where texts are not UTF-8."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests._support.search import searching

from faena.values.packed import unpack

plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=300),
)
values = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=20), st.dictionaries(st.text(max_size=5), inner, max_size=20)
    ),
    max_leaves=30,
)


@given(value=values)
@searching(100)
def test_what_is_not_utf_8_changes_nothing_else(value: Any) -> None:
    packed = msgspec.msgpack.encode([value, "x"])
    assert unpack(packed) == [value, "x"]
    spoilt = packed[:-1] + b"\xff"
    assert unpack(spoilt) == [value, "\ufffd"]


@given(packed=st.binary(max_size=60))
@searching(200)
def test_bytes_of_others_are_refused_or_read(packed: bytes) -> None:
    with contextlib.suppress(ValueError):
        unpack(packed)


@pytest.mark.parametrize(
    "packed",
    [b"", b"\xa5ab", b"\x92\xa1\xff", b"\xc1", b"\xdc\xff\xff\xa1\xff", b"\x91" * 100_000],
)
def test_what_is_cut_or_too_deep_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="packed bytes must be"):
        unpack(packed)
