"""Fetches files from Meta: only from its hosts, with a size that is not exceeded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

import httpx

from apps.providers.http import Answer, TooLarge, read_up_to
from apps.providers.whatsapp.errors import Invalid, MediaGone, MediaTooLarge, Permanent, Retryable
from apps.providers.whatsapp.exchange import Request, refusal
from apps.providers.whatsapp.fields import Fields
from apps.providers.whatsapp.settings import Settings

_MOST_REDIRECTS: Final = 3
_PATIENCE: Final = 4
"""How much longer than another request a download may take."""
_GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMedia:
    """A file that WhatsApp keeps."""

    id: str
    url: str = field(repr=False)
    """Good for five minutes, with the token."""
    mime_type: str
    size: int
    sha256: str

    @classmethod
    def read(cls, found: Fields) -> StoredMedia:
        """From the answer."""
        return cls(
            id=found.text("id"),
            url=found.text("url"),
            mime_type=found.text("mime_type"),
            size=found.whole("file_size"),
            sha256=found.text_or_empty("sha256"),
        )


async def download(
    settings: Settings, http: httpx.AsyncClient, url: str, *, most_bytes: int
) -> bytes:
    """The file at an address that WhatsApp told."""
    try:
        async with asyncio.timeout(settings.timeout_s * _PATIENCE):
            return await _follow(settings, http, url, most_bytes)
    except (TimeoutError, httpx.HTTPError) as error:
        name = type(error).__name__
        raise Retryable(f"whatsapp did not send a file in full ({name})") from None


async def _follow(settings: Settings, http: httpx.AsyncClient, url: str, most: int) -> bytes:
    """Redirects are followed on the same host only: the token goes nowhere else."""
    address = _checked(settings, url)
    for _ in range(1 + _MOST_REDIRECTS):
        found = await _fetch(settings, http, address, most)
        if isinstance(found, bytes):
            return found
        address = _redirected(address, found)
    raise Permanent(f"a file must not be redirected more than {_MOST_REDIRECTS} times")


def _redirected(address: httpx.URL, location: str) -> httpx.URL:
    to = address.join(location)
    if _origin(to) != _origin(address):
        raise Permanent("a file must not be redirected to another host")
    return to


async def _fetch(
    settings: Settings, http: httpx.AsyncClient, address: httpx.URL, most: int
) -> bytes | str:
    """The file, or where it is instead."""
    async with http.stream(
        "GET",
        address,
        headers={
            "authorization": f"Bearer {settings.access_token}",
            "accept-encoding": "identity",
        },
        timeout=settings.timeout_s,
        follow_redirects=False,
    ) as response:
        if response.has_redirect_location:
            return response.headers["location"]
        if response.status_code in _GONE:
            raise MediaGone("the address of a file has expired", status=response.status_code)
        if not response.is_success:
            answer = Answer(response.status_code, response.headers)
            raise refusal(Request(method="GET", path=""), answer)
        _check_size(response.headers.get("content-length", ""), most)
        try:
            return await read_up_to(response, most)
        except TooLarge:
            raise _too_large(most) from None


def _checked(settings: Settings, url: str) -> httpx.URL:
    """An address that may have our token: the API's own, or one of Meta's by https."""
    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise Invalid("the address of a file must be a url") from None
    if _origin(address) == _origin(httpx.URL(settings.base_url)):
        return address
    is_metas = any(
        address.host == one or address.host.endswith(f".{one}") for one in settings.media_hosts
    )
    if address.scheme != "https" or not is_metas or address.userinfo:
        raise Invalid("the address of a file must be https on a host of media_hosts")
    return address


def _origin(address: httpx.URL) -> tuple[str, str, int | None, bytes]:
    return address.scheme, address.host, address.port, address.userinfo


def _check_size(length: str, most: int) -> None:
    if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > most):
        raise _too_large(most)


def _too_large(most: int) -> MediaTooLarge:
    return MediaTooLarge(f"a file must have at most {most} bytes")
