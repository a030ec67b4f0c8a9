"""Where a worker answers: what may be given, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from faena.errors import ConfigError
from faena.worker.serve.address import ServeAddress


@pytest.mark.parametrize(
    ("text", "host", "port", "is_chosen"),
    [
        ("3001", "127.0.0.1", 3001, True),
        ("0", "127.0.0.1", 0, True),
        (" 8080 ", "127.0.0.1", 8080, True),
        ("0.0.0.0:3001", "0.0.0.0", 3001, True),
        ("0.0.0.0", "0.0.0.0", 3001, False),
        ("localhost", "localhost", 3001, False),
        ("worker-7.internal:65535", "worker-7.internal", 65535, True),
        ("[::1]:3001", "::1", 3001, True),
        ("[::]", "::", 3001, False),
    ],
)
def test_a_port_a_host_or_both_can_be_given(
    text: str, host: str, port: int, is_chosen: bool
) -> None:
    assert ServeAddress.parse(text) == ServeAddress(host=host, port=port, is_chosen=is_chosen)


def test_off_is_nowhere() -> None:
    assert ServeAddress.parse("off") is None


def test_an_address_is_shown_as_it_is_given() -> None:
    assert str(ServeAddress(host="::1", port=80)) == "[::1]:80"
    assert str(ServeAddress()) == "127.0.0.1:3001"


@pytest.mark.parametrize(
    "given",
    [
        *("", " ", "65536", "-1", "http://x:3001", "a b:1", ":3001", "x:", "x:y", "::1:3001", "٣"),
        *("x:99999", "[::1", "/tmp/sock", 3001, None, True, b"3001"),
    ],
)
def test_what_is_no_address_is_refused_by_a_sentence(given: Any) -> None:
    with pytest.raises(ConfigError, match="serve must be a port, host:port or 'off', such as"):
        ServeAddress.parse(given)
