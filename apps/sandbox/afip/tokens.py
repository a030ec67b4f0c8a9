"""The tokens in tickets: who may do what until when, signed so that the services can tell."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from binascii import Error as Base64Error
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

WSAA_NAME: Final = "CN=wsaahomo, O=AFIP, C=AR, SERIALNUMBER=CUIT 33693450239"
_EARLIER: Final = timedelta(seconds=60)
"""A token is good a minute before its ticket says so."""


class BadToken(Exception):
    """A token that the services do not take; the message is theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a token says."""

    service: str
    subject: str
    """The name in the certificate that it was asked for with."""
    relations: frozenset[int]
    since: datetime
    until: datetime


class Mint:
    """Makes tokens and recognises its own."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def make(self, grant: Grant) -> tuple[str, str]:
        """A token and its sign."""
        token = base64.b64encode(_written(grant).encode()).decode("ascii")
        return token, self._sign(token)

    def open(self, token: str, sign: str, now: datetime) -> Grant:
        """What a token grants; refused in the order in which the services look at it."""
        if not token:
            raise BadToken("ValidacionDeToken: Parametro nulo o vacio (token)")
        grant = _read(token)
        if not grant.since <= now < grant.until:
            since, until, at = (_epoch(one) for one in (grant.since, grant.until, now))
            raise BadToken(
                "ValidacionDeToken: No validaron las fechas del token. "
                f"GenTime={since}, ExpTime={until}, NowUTC={at}"
            )
        if not hmac.compare_digest(sign.encode(), self._sign(token).encode()):
            raise BadToken("ValidacionDeToken: Error al verificar hash: ")
        return grant

    def _sign(self, token: str) -> str:
        """As long as the real ones: 128 bytes."""
        first = hmac.digest(self._secret, token.encode(), hashlib.sha512)
        return base64.b64encode(first + hmac.digest(self._secret, first, hashlib.sha512)).decode()


def _written(grant: Grant) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<sso version="2.0">\n'
        f"    <id src={quoteattr(WSAA_NAME)} dst={quoteattr(f'CN={grant.service}, O=AFIP, C=AR')} "
        f'unique_id="{secrets.randbits(32)}" gen_time="{_epoch(grant.since - _EARLIER)}" '
        f'exp_time="{_epoch(grant.until)}"/>\n'
        '    <operation type="login" value="granted">\n'
        f'        <login entity="33693450239" service={quoteattr(grant.service)} '
        f'uid={quoteattr(grant.subject)} authmethod="cms" regmethod="22">\n'
        f"            <relations>\n{_relations(grant.relations)}            </relations>\n"
        "        </login>\n    </operation>\n</sso>\n"
    )


def _relations(cuits: Iterable[int]) -> str:
    return "".join(
        f'                <relation key="{cuit}" reltype="4"/>\n' for cuit in sorted(cuits)
    )


@lru_cache(maxsize=256)
def _read(token: str) -> Grant:
    """Each token once: one is shown thousands of times."""
    try:
        root = fromstring(base64.b64decode(token, validate=True), forbid_dtd=True)
        return _grant(root)
    except (Base64Error, ParseError, DefusedXmlException, ValueError, LookupError, OverflowError):
        raise BadToken(
            "ValidacionDeToken: No valido token. Excepcion: CargarStringBase64Token: Excepción: "
            "CargarNodos: Error al cargar token XML. Excepcion: Data at the root level is invalid. "
            "Line 1, position 1."
        ) from None


def _grant(root: Element) -> Grant:
    identity, login = root.find("id"), root.find("operation/login")
    if identity is None or login is None:
        raise ValueError("the token lacks a part")
    return Grant(
        service=login.attrib["service"],
        subject=login.attrib["uid"],
        relations=frozenset(int(one.attrib["key"]) for one in login.iter("relation")),
        since=_instant(identity.attrib["gen_time"]),
        until=_instant(identity.attrib["exp_time"]),
    )


def _epoch(instant: datetime) -> int:
    return int(instant.timestamp())


def _instant(text: str) -> datetime:
    return datetime.fromtimestamp(int(text), UTC)
