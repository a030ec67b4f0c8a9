"""Files that WhatsApp keeps, and the addresses at which each can be had once."""

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from apps.sandbox.whatsapp.graph_error import Refused

URL_LIFE_S: Final = 300

_MB: Final = 1024 * 1024
_TYPES: Final[Mapping[str, int]] = {
    "audio/aac": 16 * _MB,
    "audio/amr": 16 * _MB,
    "audio/mpeg": 16 * _MB,
    "audio/mp4": 16 * _MB,
    "audio/ogg": 16 * _MB,
    "image/jpeg": 5 * _MB,
    "image/png": 5 * _MB,
    "image/webp": _MB // 2,
    "video/mp4": 16 * _MB,
    "video/3gpp": 16 * _MB,
    "text/plain": 100 * _MB,
    "application/pdf": 100 * _MB,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file."""

    id: str
    data: bytes
    mime_type: str

    @property
    def sha256(self) -> bytes:
        """Its digest."""
        return hashlib.sha256(self.data).digest()


class MediaStore:
    """The files of one number."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self._links: dict[str, tuple[str, float]] = {}
        self._numbers = itertools.count(4_490_709_327_384_033)

    def keep(self, data: bytes, mime_type: str) -> File:
        """Keep a file of a type and a size that WhatsApp takes."""
        most = _TYPES.get(mime_type.partition(";")[0])
        if most is None:
            raise Refused(100, f"Param file must be a file with one of: {', '.join(_TYPES)}")
        if not 0 < len(data) <= most:
            raise Refused(131053, f"the file must have 1 to {most} bytes")
        file = File(id=str(next(self._numbers)), data=data, mime_type=mime_type)
        self.files[file.id] = file
        return file

    def link(self, file: File, now: float) -> str:
        """A new secret under which a file can be had once, for five minutes."""
        secret = secrets.token_urlsafe(24)
        self._links[secret] = (file.id, now + URL_LIFE_S)
        return secret

    def open(self, secret: str, now: float) -> File | None:
        """The file under a secret, which is good no more."""
        id_, until = self._links.pop(secret, ("", 0.0))
        return self.files[id_] if now < until else None

    def shown(self, file: File, url: str) -> dict[str, Any]:
        """What the API tells of a file."""
        return {
            "messaging_product": "whatsapp",
            "url": url,
            "mime_type": file.mime_type,
            "sha256": file.sha256.hex(),
            "file_size": str(len(file.data)),
            "id": file.id,
        }
