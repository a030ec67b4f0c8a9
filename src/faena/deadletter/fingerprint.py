"""Computes a fingerprint that errors of the same kind share.

Two errors have the same fingerprint if these agree: the name, the code, the message without its
variable parts (numbers, hexadecimal, uuids, quoted parts), and the innermost frames of the user's
own code. Line numbers are left out, so that an edit elsewhere in the file does not change it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from faena.outcomes import ErrorRecord

_READ: Final = 500
"""The most characters of a message that are read."""

_SAMPLE: Final = 200
_FRAMES: Final = 3
_DIGITS: Final = 6
"""Bytes of a fingerprint."""

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]+|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_FRAME = re.compile(r'^  File "(?P<file>[^"\n]+)", line \d+, in (?P<name>.+)$', re.MULTILINE)
_FOREIGN = ("site-packages", "dist-packages", "/lib/python", "/faena/", "<frozen ")


def fingerprint(error: ErrorRecord) -> str:
    """Twelve hexadecimal digits, the same for errors of the same kind."""
    parts = (error.name, error.code or "", sample_of(error.message), *_frames(error.stack or ""))
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=_DIGITS)
    return digest.hexdigest()


def sample_of(message: str) -> str:
    """A message without its variable parts."""
    text = message[:_READ]
    for pattern, sign in ((_QUOTED, "'…'"), (_UUID, "#"), (_ADDRESS, "#"), (_NUMBER, "#")):
        text = pattern.sub(sign, text)
    return " ".join(text.split())[:_SAMPLE]


def _frames(stack: str) -> list[str]:
    """The innermost frames of the user's own code; of all code if there are none."""
    frames = [(one["file"], one["name"]) for one in _FRAME.finditer(stack)]
    own = [one for one in frames if not any(word in one[0] for word in _FOREIGN)]
    return [f"{file.rsplit('/', 1)[-1]}:{name}" for file, name in (own or frames)[-_FRAMES:]]
