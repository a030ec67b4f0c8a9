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

from faena.errors import ArchiveUnreadable, StoreError, StoreRejected, StoreUnavailable
from faena.pg.archive.store import ENDPOINT, Bucket, Listed, check_endpoint, check_key

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


_PANICS: Final = frozenset({"RustPanic", "PanicException"})
"""Errors of the client itself, whose classes it does not export."""


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
        if not given.endpoint and known["endpoint"]:
            check_endpoint(ENDPOINT, known["endpoint"])
        self._check_keys(known["endpoint"])
        is_plain = (known["endpoint"] or "").startswith("http://")
        with self._translated(given.url):
            return S3Store(
                given.name,
                prefix=given.prefix or None,
                client_options={"allow_http": is_plain, "timeout": _TIMEOUT},
                retry_config={"max_retries": _TRIES, "retry_timeout": _PATIENCE},
                **{name: value for name, value in known.items() if value},
            )

    def _check_keys(self, endpoint: str | None) -> None:
        if self._bucket.access_key:
            return
        has_key, has_secret = map(os.environ.get, ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
        if bool(has_key) != bool(has_secret):
            found = "AWS_ACCESS_KEY_ID" if has_key else "AWS_SECRET_ACCESS_KEY"
        elif endpoint and not any(map(os.environ.get, _KEYS)):
            found = "none"
        else:
            return
        where = f" at {endpoint}" if endpoint else ""
        raise StoreRejected(
            f"{self.url}{where} must have both keys, got {found}: give access_key and secret_key "
            f"to Bucket, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            op="archive",
        )

    async def put(self, key: str, blob: bytes) -> None:
        """One request: S3 keeps the whole object or nothing."""
        with self._translated(key, is_there=False):
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

        with self._translated(key, is_there=False):
            try:
                await obstore.put_async(self._store, check_key(key), watched(), use_multipart=True)
            except Exception:
                if failed:  # obstore tells it in words of its own
                    raise failed[0] from None
                raise

    async def get(self, key: str) -> AsyncIterator[bytes]:
        """As the service sends it."""
        with self._translated(key):
            found = await obstore.get_async(self._store, check_key(key))
            async for chunk in found.stream(min_chunk_size=_CHUNK):
                yield bytes(chunk)

    async def delete(self, *keys: str) -> None:
        """Many in one request."""
        wanted = [check_key(key) for key in keys]
        if wanted:
            with self._translated(wanted[0]):
                try:
                    await obstore.delete_async(self._store, wanted)
                except FileNotFoundError:
                    return

    async def list(self, prefix: str) -> AsyncIterator[Listed]:
        """Page by page."""
        folder = check_key(prefix) if prefix else None
        with self._translated(prefix or "list", is_there=False):
            async for page in obstore.list(self._store, folder):
                for one in page:
                    yield Listed(one["path"], one["size"])

    async def sign(self, key: str, lifetime: timedelta) -> str | None:
        """A presigned GET."""
        with self._translated(key):
            return await obstore.sign_async(self._store, "GET", check_key(key), lifetime)

    @contextmanager
    def _translated(self, key: str, *, is_there: bool = True) -> Generator[None]:
        """`is_there`: whether the call is about an object that exists; else only the bucket can be
        what is missing."""
        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            raise self._told(error, key, is_there=is_there) from error
        except BaseException as error:
            if type(error).__name__ not in _PANICS:
                raise
            raise StoreRejected(
                f"archive {key}: the client of {self.url} has failed: check endpoint, region and "
                f"keys of the bucket",
                op="archive",
            ) from error

    def _told(self, error: Exception, key: str, *, is_there: bool) -> StoreError:
        is_missing = isinstance(error, FileNotFoundError)
        if "NoSuchBucket" in str(error) or (is_missing and not is_there):
            return StoreRejected(
                f"archive {key}: bucket {self._bucket.name} does not exist: create it, or correct "
                f"its name or endpoint",
                op="archive",
            )
        if is_missing:
            return ArchiveUnreadable(f"archive {key} does not exist", op="archive")
        kind = StoreRejected if isinstance(error, _REFUSED) else StoreUnavailable
        return kind(f"archive {key}: {_words(error)}", op="archive")


def _words(error: Exception) -> str:
    """The first line, which has no request in it."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
