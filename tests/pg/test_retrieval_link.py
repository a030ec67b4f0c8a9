"""Links: what was signed is accepted until its end; everything else is refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from faena.errors import ArchiveUnreadable, ArgumentError
from faena.pg.retrieval.link import (
    Link,
    LinkExpired,
    LinkRefused,
    binding_of,
    read_token,
    write_token,
)
from faena.pg.retrieval.period import Period, read_period, within

OLD, NEW, OTHER = b"o" * 32, b"n" * 32, b"x" * 32
ID = "0123456789abcdef" * 2
LINK = Link(ID, 1000, binding_of("org-1", "retrievals/a"))


def test_a_token_says_what_was_written_until_its_end() -> None:
    token = write_token(LINK, [NEW])
    assert read_token(token, [NEW], 999.9) == LINK
    with pytest.raises(LinkExpired, match="has expired"):
        read_token(token, [NEW], 1000)
    assert "org-1" not in token
    assert "/" not in token


def test_secrets_are_changed_one_after_the_other() -> None:
    token = write_token(LINK, [OLD])
    assert read_token(token, [NEW, OLD], 0) == LINK
    assert read_token(write_token(LINK, [NEW, OLD]), [NEW], 0) == LINK
    with pytest.raises(LinkRefused):
        read_token(token, [NEW, OTHER], 0)


def test_each_changed_character_is_noticed() -> None:
    token = write_token(LINK, [NEW])
    for place in range(len(token)):
        other = "A" if token[place] != "A" else "B"
        with pytest.raises(LinkRefused):
            read_token(token[:place] + other + token[place + 1 :], [NEW], 0)


def _signed(body: bytes, purpose: bytes = b"faena archive link\0") -> str:
    mac = hmac.digest(NEW, purpose + body, "sha256")
    return base64.urlsafe_b64encode(body + mac).decode().rstrip("=")


def test_links_that_were_sent_before_an_upgrade_work() -> None:
    """The form of a token, written out here once more: tenants have some of them in their mail."""
    body = b"\x01" + (1000).to_bytes(8) + bytes.fromhex(ID) + LINK.binding
    assert write_token(LINK, [NEW]) == _signed(body)
    assert LINK.binding == hashlib.sha256(b"\0\0\0\x05org-1retrievals/a").digest()[:16]


@pytest.mark.parametrize("version", [0, 2])
def test_a_token_of_another_version_is_refused(version: int) -> None:
    body = bytes([version]) + (1000).to_bytes(8) + bytes.fromhex(ID) + LINK.binding
    with pytest.raises(LinkRefused):
        read_token(_signed(body), [NEW], 0)


def test_what_a_secret_has_signed_for_another_purpose_is_refused() -> None:
    body = b"\x01" + (1000).to_bytes(8) + bytes.fromhex(ID) + LINK.binding
    for purpose in (b"", b"faena other link\0"):
        with pytest.raises(LinkRefused):
            read_token(_signed(body, purpose), [NEW], 0)


def test_an_expired_link_that_was_changed_is_not_called_expired() -> None:
    blob = bytearray(base64.urlsafe_b64decode(write_token(LINK, [NEW]) + "=="))
    blob[8] ^= 1
    with pytest.raises(LinkRefused):
        read_token(base64.urlsafe_b64encode(blob).decode().rstrip("="), [NEW], 10**9)


@pytest.mark.parametrize(
    "token",
    ["", "x", "=" * 8, "ñ" * 90, "A" * 500, "../..", "%2e", "\0", write_token(LINK, [NEW]) + "="],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(LinkRefused):
        read_token(token, [NEW], 0)


def test_a_binding_is_of_one_tenant_and_one_file() -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), ("a", "bd")]
    assert len({binding_of(*one) for one in pairs}) == len(pairs)


# -- from and to ----------------------------------------------------------------------------------


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [
        ("2023-01-01", "2023-01-31", ("2023-01-01", "2023-02-01")),
        (date(2024, 2, 29), date(2024, 2, 29), ("2024-02-29", "2024-03-01")),
        ("2023-01-01T03:00+03:00", "2023-01-01T01:00Z", ("2023-01-01", "2023-01-01T01:00")),
        ("2023-01-01", "2023-01-01T00:00:00.000001Z", ("2023-01-01", "2023-01-01T00:00:00.000001")),
    ],
)
def test_days_are_whole_and_instants_exact(start: Any, end: Any, wanted: list[str]) -> None:
    assert read_period(start, end) == Period(*map(at, wanted))


@pytest.mark.parametrize("text", ["", "2023", "2023-02-30", "20230101", "today", "9999-12-31", 5])
def test_other_words_are_refused(text: Any) -> None:
    with pytest.raises(ArgumentError, match="from must"):
        read_period(text, "2023-12-31")


@pytest.mark.parametrize(
    ("text", "is_in"),
    [
        ("2023-01-01 00:00:00+00", True),
        ("2022-12-31 23:59:59.999999+00", False),
        ("2023-01-01 11:59:59.999999", True),
        ("2023-01-01 12:00:00.4+00", True),
        ("2023-01-01 12:00:00.5+00", False),
        ("2023-01-01 12:00:00.500001+00", False),
        ("2023-01-01", True),
        ("2023-01-02", False),
        ("10000-01-01 00:00:00+00", False),
        ("2023-01-01 00:00:00+00 BC", False),
    ],
)
def test_rows_are_in_a_time_to_the_microsecond(text: str, is_in: bool) -> None:
    period = Period(at("2023-01-01"), at("2023-01-01T12:00:00.500000"))
    line = b'{"id":"1","at":"%s"}' % text.encode()
    assert within(period, "at", "k")(line) is is_in


@pytest.mark.parametrize("line", [b"{}", b"[]", b"x", b'{"at":null}', b'{"at":"x"}'])
def test_a_line_without_its_time_is_told(line: bytes) -> None:
    period = Period(at("2023-01-01"), at("2023-01-01") + timedelta(days=1))
    with pytest.raises(ArchiveUnreadable, match="archive k must have a time at in each line"):
        within(period, "at", "k")(line)
