"""Objects in a bucket of S3 or of a service that speaks S3, through obstore."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from typing import Any, Final

import obstore
from obstore import exceptions
from obstore.store import S3Store

from faena.errors import ArchiveUnreadable, StoreRejected, StoreUnavailable
from faena.pg.archive.store import ENDPOINT, Bucket, Listed, check_key

_CHUNK: Final = 1 << 20
_TRIES: Final = 5
_TIMEOUT: Final = timedelta(seconds=60)
_PATIENCE: Final = timedelta(minutes=3)
_REFUSED: Final = (
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
    exceptions.InvalidPathError,
    exceptions.NotSupportedError,
)
_KEYS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Without one of them the client would ask the machine's own address for credentials of AWS, which
are none of another service."""


class BucketStore:
    """Objects of one bucket, below its prefix."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    @property
    def url(self) -> str:
        """s3://bucket/prefix"""
        return self._bucket.url

    @cached_property
    def _store(self) -> S3Store:
        """Made at the first call: credentials are read then."""
        given = self._bucket
        known: dict[str, Any] = {
            "endpoint": given.endpoint or os.environ.get(ENDPOINT),
            "region": given.region or os.environ.get("AWS_REGION"),
            "access_key_id": given.access_key,
            "secret_access_key": given.secret_key,
        }
        if known["endpoint"] and not given.access_key and not any(map(os.environ.get, _KEYS)):
            raise StoreRejected(
                f"{given.url} at {known['endpoint']} must have keys, got none: give access_key and "
                f"secret_key, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                op="archive",
            )
        is_plain = (known["endpoint"] or "").startswith("http://")
        with _translated(given.url):
            return S3Store(
                given.name,
                prefix=given.prefix or None,
                client_options={"allow_http": is_plain, "timeout": _TIMEOUT},
                retry_config={"max_retries": _TRIES, "retry_timeout": _PATIENCE},
                **{name: value for name, value in known.items() if value},
            )

    async def put(self, key: str, blob: bytes) -> None:
        """One request: S3 keeps the whole object or nothing."""
        with _translated(key):
            await obstore.put_async(self._store, check_key(key), blob, use_multipart=False)

    async def write(self, key: str, chunks: AsyncIterator[bytes]) -> None:
        """In parts, which S3 puts together at the end."""
        failed: list[Exception] = []

        async def watched() -> AsyncIterator[bytes]:
            try:
                async for chunk in chunks:
                    yield chunk
            except Exception as error:
                failed.append(error)
                raise

        with _translated(key):
            try:
                await obstore.put_async(self._store, check_key(key), watched(), use_multipart=True)
            except Exception:
                if failed:  # obstore tells it in words of its own
                    raise failed[0] from None
                raise

    async def get(self, key: str) -> AsyncIterator[bytes]:
        """As the service sends it."""
        with _translated(key):
            found = await obstore.get_async(self._store, check_key(key))
            async for chunk in found.stream(min_chunk_size=_CHUNK):
                yield bytes(chunk)

    async def delete(self, *keys: str) -> None:
        """Many in one request."""
        wanted = [check_key(key) for key in keys]
        if wanted:
            with _translated(wanted[0]):
                try:
                    await obstore.delete_async(self._store, wanted)
                except FileNotFoundError:
                    return

    async def list(self, prefix: str) -> AsyncIterator[Listed]:
        """Page by page."""
        folder = check_key(prefix) if prefix else None
        with _translated(prefix):
            async for page in obstore.list(self._store, folder):
                for one in page:
                    yield Listed(one["path"], one["size"])

    async def sign(self, key: str, lifetime: timedelta) -> str | None:
        """A presigned GET."""
        with _translated(key):
            return await obstore.sign_async(self._store, "GET", check_key(key), lifetime)


@contextmanager
def _translated(key: str) -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ArchiveUnreadable(f"archive {key} does not exist", op="archive") from error
    except _REFUSED as error:
        raise StoreRejected(f"archive {key}: {_words(error)}", op="archive") from error
    except (exceptions.BaseError, OSError) as error:
        raise StoreUnavailable(f"archive {key}: {_words(error)}", op="archive") from error


def _words(error: Exception) -> str:
    """The first line, which has no request in it."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
