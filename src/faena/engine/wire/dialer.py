"""Opens links that are ready for use: connected, authenticated, on the right database."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from math import inf
from typing import Any

import hiredis

from faena.engine.wire.address import Address, Node, Tls
from faena.engine.wire.faults import Misfit, NotOurs
from faena.engine.wire.link import Link, open_link, pack
from faena.errors import ConfigError

Commands = list[tuple[Any, ...]]

_PROBE_S = 1.0
_PRIMARY = (b"master", b"primary")


class Dialer:
    """Knows the credentials of an address; raises OSError or the server's own `ReplyError`."""

    def __init__(self, address: Address, *, client_name: str, timeout_s: float) -> None:
        self._address = address
        self._client_name = client_name
        self._timeout_s = timeout_s
        self._tls = _context(address.tls) if address.tls else None
        self._has_greeted = False

    async def dial(self, node: Node, timeout_s: float = inf) -> Link:
        """A link to a data node; with sentinels, only to a node that reports to be the primary."""
        address = self._address
        required = _credentials(address.username, address.password)
        if address.db:
            required.append(("SELECT", address.db))
        wished: Commands = [("CLIENT", "SETNAME", self._client_name)]
        if address.kind == "sentinel":
            wished.append(("ROLE",))
        link, replies = await self._greet(node, required, wished, timeout_s)
        if address.kind == "sentinel" and _is_replica(replies[-1]):
            link.close()
            raise ConnectionError(f"{node} is a replica now")
        return link

    async def dial_sentinel(self, node: Node) -> Link:
        """A link to one of the sentinels."""
        address = self._address
        required = _credentials(address.sentinel_username, address.sentinel_password)
        link, _ = await self._greet(node, required, [], inf)
        return link

    async def _greet(
        self, node: Node, required: Commands, wished: Commands, timeout_s: float
    ) -> tuple[Link, list[Any]]:
        """Connect and send the first commands; only the required ones must succeed."""
        limit_s = min(self._timeout_s, timeout_s)
        try:
            async with asyncio.timeout(limit_s):
                link = await open_link(node, self._tls)
                replies = await _introduce(link, required + wished, limit_s)
        except TimeoutError:
            if self._tls is not None:  # a plain server waits for the end of a line that never comes
                await self._refuse_misfit(node)
            raise TimeoutError("could not connect in time") from None
        except (ssl.SSLError, ConnectionError) as failure:
            if not isinstance(failure, ssl.SSLCertVerificationError | ConnectionRefusedError):
                await self._refuse_misfit(node)
            if isinstance(failure, NotOurs) and not self._has_greeted:
                raise Misfit("the server there is not Valkey or Redis") from failure
            raise
        self._has_greeted = True
        for reply in replies[: len(required)]:
            if isinstance(reply, hiredis.ReplyError):
                link.close()
                raise self._told(reply)
        return link, replies

    def _told(self, refusal: hiredis.ReplyError) -> Exception:
        """Add the database, which the server's own message does not name."""
        if "DB index" in str(refusal):
            db = self._address.db
            return Misfit(f"the URL names database {db}, which the server does not have")
        return refusal

    async def _refuse_misfit(self, node: Node) -> None:
        """If there was no valid answer, check whether the port uses TLS or not, and raise that."""
        if self._has_greeted or node.path:
            return
        if self._tls is not None and await _answers(node, None):
            raise Misfit("this port does not speak TLS: use valkey:// or redis://")
        if self._tls is None and await _answers(node, _trusting()):
            raise Misfit("this port speaks TLS: use valkeys:// or rediss://")


async def _answers(node: Node, tls: ssl.SSLContext | None) -> bool:
    """Whether a server of this kind answers, even with an error."""
    with contextlib.suppress(OSError):
        async with asyncio.timeout(_PROBE_S):
            link = await open_link(node, tls)
            try:
                await link.ask(pack(("PING",)), 1, _PROBE_S)
            finally:
                link.close()
            return True
    return False


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def _introduce(link: Link, commands: Commands, timeout_s: float) -> list[Any]:
    if not commands:
        return []
    return await link.ask(b"".join(map(pack, commands)), len(commands), timeout_s)


def _credentials(username: str | None, password: str | None) -> Commands:
    if password is None:
        return []
    return [("AUTH", username, password)] if username else [("AUTH", password)]


def _is_replica(role: Any) -> bool:
    # Where the user may not ask for the role the answer is an error; the sentinel's word counts.
    return isinstance(role, list) and role[0] not in _PRIMARY


def _context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.cert:
            context.load_cert_chain(tls.cert, tls.key)
    except OSError as cause:
        raise ConfigError(
            f"ca, cert and key must be readable PEM files, got {tls}: {cause.strerror or cause}",
            field="tls",
            value=tls,
        ) from cause
    context.check_hostname = tls.verify == "full"
    context.verify_mode = ssl.CERT_NONE if tls.verify == "none" else ssl.CERT_REQUIRED
    return context
