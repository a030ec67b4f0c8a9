"""Cursors: texts that continue a list behind a position, and belong to the list they came from."""

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
    """Of what the list is about."""
    score: str
    """As the server wrote it; empty before the first position."""
    id: str
    bounds: tuple[int | None, ...] = ()
    """Instants that were decided with the first page."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Reached).decode


def write_cursor(about: object, score: str, job: str, bounds: tuple[int | None, ...] = ()) -> str:
    """A text that continues behind a position; `about` must have a faithful `repr`."""
    packed = _encode(Reached(_digest(about), score, job, bounds))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(cursor: Any, about: object, what: str) -> Reached:
    """The position that a cursor names; `what` says in an error which list it must come from."""
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
