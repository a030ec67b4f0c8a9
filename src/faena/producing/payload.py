"""A payload on its way into a job: present or absent as its task wants it, encoded, and not too
large."""

from __future__ import annotations

from typing import Any, Final

from faena.codec import Codec
from faena.errors import PayloadError

MISSING: Final[Any] = object()
"""No payload was given; None is one."""


def encode_payload(task: str, codec: Codec[Any] | None, limit: int, payload: Any) -> bytes:
    """Encode it, in at most `limit` bytes; `codec` is None for a task that takes no payload."""
    if codec is None:
        if payload is not MISSING:
            raise PayloadError(
                f"task {task} takes no payload, got {type(payload).__name__}", op="enqueue"
            )
        return b"null"
    if payload is MISSING:
        raise PayloadError(f"task {task} needs a payload, got none", op="enqueue")
    encoded = codec.encode(payload)
    if len(encoded) > limit:
        raise PayloadError(
            f"payload of task {task} must be at most {limit} bytes, got {len(encoded)}",
            op="enqueue",
        )
    return encoded
