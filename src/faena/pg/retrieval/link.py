"""Signed links: a token says which file, whose, and until when; nobody else can make one.

    version 1 · until 8 · id 16 · binding 16 · HMAC-SHA256 32 bytes, as URL-safe base64

The binding is a digest of the tenant and of the file's key, so a token reveals neither. A token is
checked before anything is looked up. An expired one is told apart from a wrong one only if it was
signed here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from faena.errors import FaenaError

_FORM: Final = struct.Struct(">BQ16s16s")
_VERSION: Final = 1
_PURPOSE: Final = b"faena archive link"
_LONGEST: Final = 200


class LinkRefused(FaenaError):
    """The link was not made here for this file and tenant."""


class LinkExpired(FaenaError):
    """The link was good, and its time is over, or its file is gone."""


class Link(NamedTuple):
    """What a token says."""

    id: str
    """Of the retrieval."""
    until: int
    """Seconds since 1970."""
    binding: bytes


def binding_of(tenant: str, key: str) -> bytes:
    """Of one tenant and one file."""
    both = len(tenant.encode()).to_bytes(4) + tenant.encode() + key.encode()
    return hashlib.sha256(both).digest()[:16]


def write_token(link: Link, secrets: Sequence[bytes]) -> str:
    """Signed with the first secret."""
    body = _FORM.pack(_VERSION, link.until, bytes.fromhex(link.id), link.binding)
    return base64.urlsafe_b64encode(body + _mac(secrets[0], body)).decode().rstrip("=")


def read_token(token: str, secrets: Sequence[bytes], now: float) -> Link:
    """What a token says; LinkRefused if it was not signed with one of the secrets."""
    blob = _decoded(token)
    body, mac = blob[: _FORM.size], blob[_FORM.size :]
    is_signed = [hmac.compare_digest(_mac(one, body), mac) for one in secrets]
    if len(body) != _FORM.size or not any(is_signed):
        raise LinkRefused("the link is not valid", op="download")
    version, until, raw, binding = _FORM.unpack(body)
    if version != _VERSION:
        raise LinkRefused("the link is not valid", op="download")
    if until <= now:
        raise LinkExpired("the link has expired: ask for a new one", op="download")
    return Link(raw.hex(), until, binding)


def _mac(secret: bytes, body: bytes) -> bytes:
    return hmac.digest(secret, _PURPOSE + b"\0" + body, "sha256")


def _decoded(token: str) -> bytes:
    """Only the one spelling that is written: others might decode to the same bytes."""
    if len(token) > _LONGEST or not token.isascii():
        return b""
    try:
        blob = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
    return blob if base64.urlsafe_b64encode(blob).decode().rstrip("=") == token else b""
