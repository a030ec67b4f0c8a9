"""Where objects are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self
from urllib.parse import unquote, urlsplit

from apps.providers.environment import check_address, given
from apps.providers.storage.key import is_key

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_NAMES: Final = {
    "url": "STORAGE_URL",
    "endpoint": "STORAGE_ENDPOINT",
    "region": "STORAGE_REGION",
    "access_key": "STORAGE_ACCESS_KEY",
    "secret_key": "STORAGE_SECRET_KEY",
    "public_url": "STORAGE_PUBLIC_URL",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A directory, the memory of this process, or a bucket of a service that speaks S3."""

    url: str
    """`file:///srv/files`, `memory://` or `s3://bucket/prefix`."""
    endpoint: str | None = None
    """The address of a service that is not AWS."""
    region: str = "us-east-1"
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    public_url: str | None = None
    """Where anybody can read the objects, such as a CDN; None: links to a bucket are signed."""
    timeout_s: float = 30.0
    """How long one call may take in all."""

    def __post_init__(self) -> None:
        """Refuse what could not work, or would send keys' signatures in plain text."""
        scheme = urlsplit(self.url).scheme
        if scheme == "file":
            self.directory()
        elif scheme == "s3":
            self.bucket()
            if not self.access_key or not self.secret_key:
                # Without them, the client would ask the machine's own address for some.
                raise ValueError("access_key and secret_key must be given with s3://")
        elif self.url != "memory://":
            raise ValueError("url must begin with file:///, s3:// or be memory://")
        for name, url in (("endpoint", self.endpoint), ("public_url", self.public_url)):
            if url:
                check_address(name, url)

    def directory(self) -> Path:
        """Of `file:///…`."""
        parts = urlsplit(self.url)
        path = Path(unquote(parts.path))
        if parts.netloc or not path.is_absolute() or ".." in path.parts:
            raise ValueError("url must be an absolute path such as file:///srv/files")
        return path

    def bucket(self) -> tuple[str, str]:
        """Name and prefix of `s3://…`."""
        parts = urlsplit(self.url)
        prefix = parts.path.strip("/")
        if not _BUCKET.fullmatch(parts.netloc) or not (prefix == "" or is_key(prefix)):
            raise ValueError("url must name a bucket and a folder, as in s3://bucket/prefix")
        return parts.netloc, prefix

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read STORAGE_URL, and what else of `_NAMES` is set."""
        return cls(**given(environ, _NAMES, needed=["url"]))
