"""Objects by key, in a directory, in memory or in a bucket. Nothing is retried here.

client = Client(Settings.from_env(os.environ))
await client.put("org-7/invoices/0001.pdf", pdf, kind="application/pdf")
link = await client.link("org-7/invoices/0001.pdf", lifetime=timedelta(days=7))
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, TypeAlias

import obstore
from obstore import exceptions
from obstore.store import LocalStore, MemoryStore, S3Store

from apps.providers.storage.errors import NotFound, Permanent, Retryable
from apps.providers.storage.key import check_key
from apps.providers.storage.settings import Settings

MOST_BYTES: Final = 64 * 2**20
"""Of an object: it is kept in memory."""
LONGEST: Final = timedelta(days=7)
"""How long a signed link may be good."""

_TYPE: Final = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,100}(; charset=[a-z0-9-]{1,20})?")
_REFUSED: Final = (
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
    exceptions.InvalidPathError,
    exceptions.NotSupportedError,
    PermissionError,
)
_Store: TypeAlias = LocalStore | MemoryStore | S3Store


class Client:
    """Keeps objects in one place."""

    def __init__(self, settings: Settings) -> None:
        """A directory is made if it is missing; nothing else is done yet."""
        self._settings = settings
        self._store = _opened(settings)

    async def put(self, key: str, content: bytes, *, kind: str | None = None) -> None:
        """Keep an object, whole or not at all; one of the same key is replaced.

        `kind` is its media type, which a bucket tells those who follow a link.
        """
        if len(content) > MOST_BYTES:
            raise Permanent(f"an object must have at most {MOST_BYTES} bytes, got {len(content)}")
        if kind is not None and not _TYPE.fullmatch(kind):
            raise Permanent("a kind must be a media type such as application/pdf")
        attributes: dict[str, Any] = {}
        if kind is not None and not isinstance(self._store, LocalStore):  # files have none
            attributes = {"attributes": {"Content-Type": kind}}
        async with self._translated():
            await obstore.put_async(
                self._store, check_key(key), content, use_multipart=False, **attributes
            )

    async def get(self, key: str) -> bytes:
        """The content of an object."""
        async with self._translated():
            found = await obstore.get_async(self._store, check_key(key))
            if found.meta["size"] > MOST_BYTES:
                raise Permanent(f"an object must have at most {MOST_BYTES} bytes to be read")
            return bytes(await found.bytes_async())

    async def delete(self, key: str) -> None:
        """Remove an object; if there is none, that is what was wanted."""
        try:
            async with self._translated():
                await obstore.delete_async(self._store, check_key(key))
        except NotFound:
            return

    async def link(self, key: str, *, lifetime: timedelta = timedelta(hours=1)) -> str:
        """An address of an object: public if there is such a place, else signed for a while, else
        that of the file."""
        check_key(key)
        if not timedelta() < lifetime <= LONGEST:
            raise Permanent(f"the lifetime of a link must be up to {LONGEST.days} days")
        if self._settings.public_url is not None:
            return f"{self._settings.public_url.rstrip('/')}/{key}"
        if isinstance(self._store, S3Store):
            async with self._translated():
                return await obstore.sign_async(self._store, "GET", key, lifetime)
        if isinstance(self._store, LocalStore):
            return (self._settings.directory() / key).as_uri()
        return f"memory:///{key}"

    @asynccontextmanager
    async def _translated(self) -> AsyncGenerator[None]:
        """Errors of stores have addresses in them, so none stays behind ours."""
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                yield
        except FileNotFoundError:
            raise NotFound("there is no such object") from None
        except _REFUSED as error:
            raise Permanent(f"the store refused the call ({type(error).__name__})") from None
        except (exceptions.BaseError, OSError) as error:  # TimeoutError is one
            raise Retryable(f"the store did not do it ({type(error).__name__})") from None


def _opened(settings: Settings) -> _Store:
    if settings.url == "memory://":
        return MemoryStore()
    if settings.url.startswith("file:"):
        return LocalStore(settings.directory(), mkdir=True)
    name, prefix = settings.bucket()
    is_plain = (settings.endpoint or "").startswith("http://")
    wait = timedelta(seconds=settings.timeout_s)
    known: dict[str, Any] = {"endpoint": settings.endpoint} if settings.endpoint else {}
    return S3Store(
        name,
        prefix=prefix or None,
        region=settings.region,
        access_key_id=settings.access_key or "",
        secret_access_key=settings.secret_key or "",
        client_options={"allow_http": is_plain, "timeout": wait},
        retry_config={"max_retries": 0, "retry_timeout": wait},
        **known,
    )
