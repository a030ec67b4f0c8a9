"""Object storage: a directory or a bucket, behind the few calls that archives need.

    store = open_store("s3://archives/campo")       # or a path, or file:///srv/archives
    await store.put("public.jobs/t-org-7/2023-01/12-9f.jsonl.zst", blob)
    async for chunk in store.get(key): ...

An object appears whole or not at all, and `put` returns when it is durable. Keys are made by
`manifest.py`; others are refused, so no key leaves the prefix. Errors: `StoreUnavailable` if the
same call may succeed later, `StoreRejected` if not, `ArchiveUnreadable` for an object that is not
there.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from faena.errors import ArgumentError, ConfigError, shown

URL: Final = "FAENA_ARCHIVE_URL"
"""Where archives are if the program does not say: a path, file:// or s3://bucket/prefix."""
ENDPOINT: Final = "FAENA_ARCHIVE_ENDPOINT"
"""The address of a service that speaks S3 and is not AWS."""

_KEY: Final = re.compile(
    r"[A-Za-z0-9_-][A-Za-z0-9._=-]{0,254}(/[A-Za-z0-9_-][A-Za-z0-9._=-]{0,254})*"
)
_ENDPOINT: Final = re.compile(r"https?://[A-Za-z0-9._~\[\]:-]+(/[A-Za-z0-9._~/-]*)?")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


class Listed(NamedTuple):
    """An object in a store."""

    key: str
    size: int


class ObjectStore(Protocol):
    """Where objects are. Close nothing: stores hold no connection between calls."""

    @property
    def url(self) -> str:
        """How the catalogue names this store; it contains no secret."""
        ...

    async def put(self, key: str, blob: bytes) -> None:
        """Write an object, durably and whole; one that exists is replaced."""
        ...

    async def write(self, key: str, chunks: AsyncIterator[bytes]) -> None:
        """The same for an object that does not fit into memory; an error of `chunks` leaves no
        object."""
        ...

    def get(self, key: str) -> AsyncIterator[bytes]:
        """The bytes of an object, in chunks; `ArchiveUnreadable` if there is none."""
        ...

    async def delete(self, *keys: str) -> None:
        """Remove objects, and what interrupted writes of them have left; those that do not exist
        are no error."""
        ...

    def list(self, prefix: str) -> AsyncIterator[Listed]:
        """All objects in the folder `prefix`, in no order."""
        ...

    async def sign(self, key: str, lifetime: timedelta) -> str | None:
        """A link with which anybody can read the object for a while; None if it has no links."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket of S3 or of a service that speaks S3.

    What is not given is read from the environment when it is used: FAENA_ARCHIVE_ENDPOINT,
    AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; else the credentials
    that the machine has.
    """

    name: str
    prefix: str = ""
    """A folder in the bucket."""
    endpoint: str | None = None
    """The address of a service that is not AWS: https://storage.example."""
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if _BUCKET.fullmatch(str(self.name)) is None:
            raise ConfigError(
                f"bucket must be a name of 3 to 63 small letters, digits, dots and hyphens, got "
                f"{shown(self.name)}",
                field="name",
                value=self.name,
            )
        if self.prefix:
            _check_prefix(self.prefix)
        if self.endpoint is not None:
            check_endpoint("endpoint", self.endpoint)
        if (self.access_key is None) != (self.secret_key is None):
            raise ConfigError(
                "access_key and secret_key must be given together, got one of them",
                field="access_key",
            )

    @property
    def url(self) -> str:
        """How the catalogue names it."""
        return f"s3://{self.name}/{self.prefix}".rstrip("/")


def open_store(
    to: str | Path | Bucket | None = None, *, default: Path | None = None
) -> ObjectStore:
    """The store at a path or URL; without one, that of FAENA_ARCHIVE_URL, else `default`.

    Opens no connection and creates no directory.
    """
    where = read_place(to or os.environ.get(URL) or default)
    if isinstance(where, Bucket):
        from faena.pg.archive.bucket import BucketStore  # noqa: PLC0415 - needs obstore

        return BucketStore(where)
    from faena.pg.archive.directory import DirectoryStore  # noqa: PLC0415 - imports this module

    return DirectoryStore(where)


def read_place(to: Any) -> Path | Bucket:
    """What a program or the environment says about where archives are."""
    if isinstance(to, Bucket):
        return to
    if isinstance(to, Path) or (isinstance(to, str) and to and "://" not in to):
        return Path(to).absolute()
    parts = urlsplit(to) if isinstance(to, str) else None
    if parts is not None and parts.scheme == "s3" and not (parts.query or parts.username):
        return Bucket(name=parts.netloc, prefix=parts.path.strip("/"))
    if parts is not None and parts.scheme == "file" and parts.netloc in {"", "localhost"}:
        return Path(unquote(parts.path))
    raise ConfigError(
        f"archives must be in a directory or a bucket such as s3://bucket/prefix, got {shown(to)}",
        field="to",
        value=to,
    )


def check_endpoint(name: str, endpoint: Any) -> None:
    """Refuse what the client would fail on in words of its own, or not at all."""
    is_url = isinstance(endpoint, str) and _ENDPOINT.fullmatch(endpoint) is not None
    if not is_url:
        raise ConfigError(
            f"{name} must be an address such as https://storage.example, got {shown(endpoint)}",
            field=name,
            value=endpoint,
        )


def check_key(key: str) -> str:
    """Refuse keys that are not made by Faena: no dots alone, nothing absolute, plain letters."""
    if _KEY.fullmatch(key) is None or len(key) > 900:
        raise ArgumentError(
            f"key must be folders and a name of plain letters, got {shown(key)}",
            field="key",
            value=key,
        )
    return key


def _check_prefix(prefix: str) -> None:
    if _KEY.fullmatch(str(prefix)) is None:
        raise ConfigError(
            f"prefix must be folders of plain letters, digits, dots and hyphens, got "
            f"{shown(prefix)}",
            field="prefix",
            value=prefix,
        )
