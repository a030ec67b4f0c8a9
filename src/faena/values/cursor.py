"""Cursors: strings that continue a list after a position; each is valid for its own list only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from typing import Any

import msgspec

from faena.errors import ConfigError, shown


class Reached(msgspec.Struct, array_like=True, frozen=True):
    """Where a list stopped."""

    digest: bytes
    """Identifies the list: its filters and order."""
    score: str
    """As the server wrote it; empty for the start of the list."""
    id: str
    bounds: tuple[int | None, ...] = ()
    """Instants fixed by the first page."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Reached).decode


def write_cursor(about: object, score: str, job: str, bounds: tuple[int | None, ...] = ()) -> str:
    """A cursor for the position after `job`; the `repr` of `about` must identify the list."""
    packed = _encode(Reached(_digest(about), score, job, bounds))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(cursor: Any, about: object, what: str) -> Reached:
    """The position of a cursor; `what` names the list in errors."""
    try:
        padding = "=" * (-len(cursor) % 4)
        read = _decode(base64.b64decode(cursor + padding, altchars=b"-_", validate=True))
        is_place = math.isfinite(float(read.score or 0))
    except (binascii.Error, msgspec.MsgspecError, TypeError, ValueError):
        read, is_place = None, False
    if read is None or not is_place or read.digest != _digest(about):
        raise ConfigError(
            f"cursor must come from {what}, got {shown(cursor)}; leave it out for the first page",
            field="cursor",
            value=cursor,
        )
    return read


def _digest(about: object) -> bytes:
    return hashlib.blake2b(repr(about).encode(), digest_size=6).digest()
