"""Recordings whose words can be read: a WAV of silence with its text beside the sound.

The text is the comment (`ICMT`) in the `LIST`/`INFO` chunk of the file, in UTF-8. Programs that
play the file hear nothing; the stand-in hears the text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_RATE: Final = 8000
"""Samples of one byte in a second."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What is in a recording."""

    text: str
    seconds: float


def spoken(text: str, seconds: float = 3.0) -> bytes:
    """A recording in which `text` is said."""
    form = struct.pack("<HHIIHH", 1, 1, _RATE, _RATE, 1, 8)  # PCM, mono, 8 bits
    sound = b"\x80" * int(seconds * _RATE)
    words = b"INFO" + _chunk(b"ICMT", text.encode() + b"\0")
    body = b"WAVE" + _chunk(b"fmt ", form) + _chunk(b"LIST", words) + _chunk(b"data", sound)
    return _chunk(b"RIFF", body)


def heard(audio: bytes) -> Heard | None:
    """What is said in a recording; None if it is no WAV."""
    if len(audio) < 12 or audio[:4] != b"RIFF" or audio[8:12] != b"WAVE":
        return None
    chunks = dict(_chunks(audio[12:]))
    form, sound = chunks.get(b"fmt ", b""), chunks.get(b"data")
    if len(form) < 16 or sound is None:
        return None
    a_second = int.from_bytes(form[8:12], "little")
    words = dict(_chunks(chunks.get(b"LIST", b"INFO")[4:])).get(b"ICMT", b"")
    text = words.rstrip(b"\0").decode(errors="replace")
    return Heard(text, len(sound) / a_second) if a_second else None


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(content):
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        yield content[at : at + 4], content[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
