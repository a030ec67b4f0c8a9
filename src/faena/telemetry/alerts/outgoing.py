"""One HTTP POST to an address outside, that cannot be led to an address inside.

The name is resolved once, all of its addresses must be global ones, and the connection is made to
the first of these that takes it; nothing is followed. A channel that allows private addresses skips
only the check.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import SplitResult, urlsplit

from faena.options.channels import check_url
from faena.telemetry.alerts.failure import Refused, Undelivered

TIMEOUT_S: Final = 10.0
_CONNECT_S: Final = 3.0
"""How long one of several addresses may take; some may be out of reach from here."""
_LONGEST_LINE: Final = 4_096
_PERMANENT: Final = range(400, 500)
_BUSY: Final = frozenset({408, 425, 429})
"""Of those, the ones that may be accepted later."""


async def post(url: str, body: bytes, headers: Mapping[str, str], *, allow_private: bool) -> None:
    """Send it, and return when it was accepted. Errors name no URL, which may be a secret."""
    check_url(url, allow_private=allow_private)
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            addresses = await _addresses(parts, allow_private=allow_private)
            status = await exchange(parts, addresses, _head(parts, body, headers) + body)
    except TimeoutError:
        raise Undelivered(f"there must be an answer within {TIMEOUT_S:g} s, got none") from None
    except (OSError, EOFError, ValueError) as error:
        raise Undelivered(f"the receiver must be reachable, got {type(error).__name__}") from None
    if status in _PERMANENT and status not in _BUSY:
        raise Refused(f"the receiver must accept the notice, got status {status}")
    if not 200 <= status < 300:
        raise Undelivered(f"the receiver must accept the notice, got status {status}")


async def _addresses(parts: SplitResult, *, allow_private: bool) -> list[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(parts.hostname, _port(parts), type=socket.SOCK_STREAM)
    addresses = [str(address[0]) for *_, address in found]
    inside = [one for one in addresses if not is_global(one)]
    if not addresses or (inside and not allow_private):
        raise Undelivered(
            "the address of the receiver must be global, got a private or local one: "
            "allow_private=True permits it"
        )
    return list(dict.fromkeys(addresses))


def is_global(address: str) -> bool:
    """Whether an address is on the internet, also behind the forms that IPv6 has for IPv4."""
    one = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(one, ipaddress.IPv6Address):
        inner = one.ipv4_mapped or one.sixtofour or (one.teredo and one.teredo[1])
        inner = inner or (ipaddress.IPv4Address(one.packed[-4:]) if one in _NAT64 else None)
        if inner is not None and not inner.is_global:
            return False
    return one.is_global and not one.is_multicast


_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _head(parts: SplitResult, body: bytes, headers: Mapping[str, str]) -> bytes:
    host = parts.netloc
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", "Connection: close", "User-Agent: faena"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


async def exchange(parts: SplitResult, addresses: Sequence[str], request: bytes) -> int:
    """The status that the receiver answers, at one of its addresses.

    What it does after its answer is not waited for: one that keeps the connection open would make
    a notice that it has accepted look lost, and get it again.
    """
    reader, writer = await _connected(parts, addresses)
    try:
        writer.write(request)
        await writer.drain()
        line = await reader.readline()
        version, status, *_ = line.split(maxsplit=2)
        if not version.startswith(b"HTTP/1."):
            raise ValueError(version)
        return int(status)
    finally:
        writer.transport.abort()


async def _connected(
    parts: SplitResult, addresses: Sequence[str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    *others, last = addresses
    for address in others:
        try:
            async with asyncio.timeout(_CONNECT_S):
                return await _connect(parts, address)
        except OSError:  # TimeoutError is one
            continue
    return await _connect(parts, last)


async def _connect(
    parts: SplitResult, address: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    return await asyncio.open_connection(
        address,
        _port(parts),
        ssl=tls,
        server_hostname=parts.hostname if tls else None,
        limit=_LONGEST_LINE,
    )
