"""What makes two failures the same kind."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.deadletter.fingerprint import fingerprint, sample_of
from faena.outcomes import ErrorRecord

SAME = [
    ("order 17 is gone", "order 18021 is gone"),
    ("no answer after 1.5 s", "no answer after 30.25 s"),
    ("user 'ana' is unknown", "user 'bob smith' is unknown"),
    ('no "x" here', 'no "y" here'),
    ("at 0x7f3a2b", "at 0xDEADBEEF"),
    (
        "job 6f0c2f5e-9f0b-4a52-9f0e-2d1f3c4b5a69 failed",
        "job 00000000-0000-0000-0000-000000000000 failed",
    ),
    ("digest 9f86d081884c7d65 differs", "digest 2c26b46b68ffc68f differs"),
    ("two  spaces\nand a line", "two spaces and a line"),
]
OTHER = [("order 17 is gone", "order 17 is late"), ("no such file", "no such place")]


def of(message: str, **facts: str) -> str:
    return fingerprint(ErrorRecord(name=facts.pop("name", "Boom"), message=message, **facts))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_differs_each_time_is_left_out(one: str, other: str) -> None:
    assert of(one) == of(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_words_are_another_kind(one: str, other: str) -> None:
    assert of(one) != of(other)


def test_name_and_code_count() -> None:
    assert len({of("x"), of("x", name="Bang"), of("x", code="E1"), of("x", code="E2")}) == 4


STACK = """Traceback (most recent call last):
  File "/srv/shop/{file}.py", line {line}, in {name}
    await client.send(message)
  File "/usr/lib/python3.11/site-packages/httpx/_client.py", line {line}, in send
    raise exc
httpx.ReadTimeout: {line}
"""


def test_the_innermost_frames_of_ones_own_code_count_and_their_lines_do_not() -> None:
    first = of("x", stack=STACK.format(file="mail", line=7, name="send_mail"))
    assert first == of("x", stack=STACK.format(file="mail", line=99, name="send_mail"))
    assert first != of("x", stack=STACK.format(file="mail", line=7, name="send_bill"))
    assert first != of("x", stack=STACK.format(file="bill", line=7, name="send_mail"))
    assert first != of("x")


def test_a_sample_can_be_read() -> None:
    assert sample_of("order 17 of 'ana' is gone\nsince 12:30") == "order # of '…' is gone since #"


@given(st.text(max_size=3000), st.text(max_size=200), st.one_of(st.none(), st.text()))
def test_any_error_has_twelve_digits_and_a_short_sample(
    message: str, name: str, stack: str | None
) -> None:
    error = ErrorRecord(name=name, message=message, stack=stack)
    clean = ErrorRecord(
        *(part.encode("utf-8", "replace").decode() for part in (error.name, error.message)),
        stack=stack and stack.encode("utf-8", "replace").decode(),
    )
    assert re.fullmatch("[0-9a-f]{12}", fingerprint(clean))
    assert len(sample_of(message)) <= 200
