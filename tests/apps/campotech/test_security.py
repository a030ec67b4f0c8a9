"""Tokens cannot be guessed, and private keys of organisations are sealed for them alone."""

from __future__ import annotations

import secrets
from uuid import uuid4

import pytest
from apps.campotech.security import Vault, digest_of, new_token

ONE, OTHER = uuid4(), uuid4()


def test_tokens_differ_and_are_stored_as_digests() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == len({digest_of(one) for one in tokens}) == 100
    assert all(one.startswith("ct_") and len(one) > 40 for one in tokens)


def test_what_is_sealed_can_be_opened_by_its_owner_only() -> None:
    vault = Vault((secrets.token_hex(32),))
    sealed = vault.seal(ONE, b"key")
    assert b"key" not in sealed
    assert vault.open(ONE, sealed) == b"key"
    with pytest.raises(ValueError, match=f"the key of organisation {OTHER} cannot be read"):
        vault.open(OTHER, sealed)


def test_a_changed_text_is_refused() -> None:
    vault = Vault((secrets.token_hex(32),))
    sealed = bytearray(vault.seal(ONE, b"key"))
    sealed[40] ^= 1
    with pytest.raises(ValueError, match="cannot be read"):
        vault.open(ONE, bytes(sealed))


def test_after_a_change_of_secrets_old_texts_are_still_read() -> None:
    old, new = secrets.token_hex(32), secrets.token_hex(32)
    sealed = Vault((old,)).seal(ONE, b"key")
    assert Vault((new, old)).open(ONE, sealed) == b"key"
    with pytest.raises(ValueError, match="cannot be read"):
        Vault((new,)).open(ONE, sealed)


@pytest.mark.parametrize("given", [(), ("short",), (secrets.token_hex(32), "x" * 31)])
def test_secrets_that_are_too_short_are_refused(given: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="32 characters or more"):
        Vault(given)


def test_secrets_are_not_shown() -> None:
    secret = secrets.token_hex(32)
    assert secret not in repr(Vault((secret,)))
