"""Speaks to the stand-in in raw SOAP, so that a test can send what no client would."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

import httpx
from apps.providers.afip import Credentials
from apps.sandbox.afip import WSAA_PATH, WSFE_PATH
from defusedxml.ElementTree import fromstring

ARGENTINA = timezone(timedelta(hours=-3))
NOON = datetime(2026, 11, 17, 12, tzinfo=ARGENTINA)
TODAY = "20261117"
CUIT = "20111111112"
OTHER = "30500010912"
FEV1 = "http://ar.gov.afip.dif.FEV1/"
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
LOGIN = "http://wsaa.view.sua.dvadac.desein.afip.gov"


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> datetime:
        return self.at

    def advance(self, **by: float) -> None:
        self.at += timedelta(**by)


@dataclass(frozen=True)
class Speech:
    """Raw requests to one stand-in."""

    url: str
    http: httpx.AsyncClient
    credentials: Credentials
    clock: Clock

    async def login(self, signed: bytes | str, **headers: str) -> httpx.Response:
        """Ask WSAA with these bytes as the signed message."""
        text = base64.b64encode(signed).decode() if isinstance(signed, bytes) else signed
        inner = f'<l:loginCms xmlns:l="{LOGIN}"><l:in0>{text}</l:in0></l:loginCms>'
        return await self.post(WSAA_PATH, envelope(inner), **({"soapaction": '""'} | headers))

    async def ticket(self, service: str = "wsfe") -> tuple[str, str]:
        """Token and sign of a new ticket."""
        response = await self.login(self.credentials.sign(access_request(self.clock.at, service)))
        assert response.status_code == 200, response.text
        inner = fromstring(
            next(fromstring(response.content).iter(f"{{{LOGIN}}}loginCmsReturn")).text
        )
        return inner.findtext("credentials/token"), inner.findtext("credentials/sign")

    async def call(self, operation: str, content: str, **headers: str) -> httpx.Response:
        """Call an operation of WSFEv1."""
        body = envelope(f'<{operation} xmlns="{FEV1}">{content}</{operation}>')
        headers = {"soapaction": f'"{FEV1}{operation}"'} | headers
        return await self.post(WSFE_PATH, body, **headers)

    async def post(self, path: str, body: str | bytes, **headers: str) -> httpx.Response:
        content = body.encode() if isinstance(body, str) else body
        headers = {"content-type": "text/xml; charset=utf-8"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return await self.http.post(self.url + path, content=content, headers=headers)


def envelope(inner: str) -> str:
    return f'<s:Envelope xmlns:s="{SOAP}"><s:Body>{inner}</s:Body></s:Envelope>'


def access_request(now: datetime, service: str = "wsfe", **changes: str) -> bytes:
    """A request for access; changes replace the texts of its fields, and "" leaves one out."""
    fields = {
        "source": "",
        "destination": "",
        "uniqueId": "4325399",
        "generationTime": (now - timedelta(minutes=1)).isoformat(),
        "expirationTime": (now + timedelta(minutes=1)).isoformat(),
    } | changes
    header = "".join(f"<{name}>{text}</{name}>" for name, text in fields.items() if text)
    return (
        f'<loginTicketRequest version="1.0"><header>{header}</header>'
        f"<service>{service}</service></loginTicketRequest>"
    ).encode()


def auth(token: str, sign: str, cuit: str = CUIT) -> str:
    return f"<Auth><Token>{token}</Token><Sign>{sign}</Sign><Cuit>{cuit}</Cuit></Auth>"


def fields(**given: Any) -> str:
    """Elements by name: text is escaped, XML that begins with `<` is not, None is left out."""
    return "".join(
        f"<{name}>{value if str(value).startswith('<') else escape(str(value))}</{name}>"
        for name, value in given.items()
        if value is not None
    )


def vat(*lines: tuple[int, str, str]) -> str:
    return "".join(
        f"<AlicIva>{fields(Id=rate, BaseImp=base, Importe=amount)}</AlicIva>"
        for rate, base, amount in lines
    )


VALID: Mapping[str, Any] = {
    "Concepto": 1,
    "DocTipo": 99,
    "DocNro": 0,
    "CbteDesde": 1,
    "CbteHasta": 1,
    "CbteFch": TODAY,
    "ImpTotal": "121.00",
    "ImpTotConc": 0,
    "ImpNeto": 100,
    "ImpOpEx": 0,
    "ImpTrib": 0,
    "ImpIVA": 21,
    "MonId": "PES",
    "MonCotiz": 1,
    "CondicionIVAReceptorId": 5,
    "Iva": vat((5, "100", "21")),
}
"""An invoice of class B to somebody unknown."""


def request(
    *details: Mapping[str, Any], kind: int = 6, point: int = 1, count: int | None = None
) -> str:
    """A request for CAEs; each detail says what differs from a valid one."""
    listed = "".join(
        f"<FECAEDetRequest>{fields(**{**VALID, **one})}</FECAEDetRequest>" for one in details
    )
    head = fields(CantReg=len(details) if count is None else count, PtoVta=point, CbteTipo=kind)
    return f"<FeCAEReq><FeCabReq>{head}</FeCabReq><FeDetReq>{listed}</FeDetReq></FeCAEReq>"


def result(response: httpx.Response, operation: str) -> Element:
    """The result in an answer."""
    assert response.status_code == 200, response.text
    root = fromstring(response.content)
    return next(root.iter(f"{{{FEV1}}}{operation}Result"))


def text(parent: Element, path: str) -> str | None:
    return parent.findtext("/".join(f"{{{FEV1}}}{name}" for name in path.split("/")))


def codes(parent: Element, item: str) -> list[int]:
    """The codes of all errors (`Err`) or observations (`Obs`)."""
    found = (one.findtext(f"{{{FEV1}}}Code") for one in parent.iter(f"{{{FEV1}}}{item}"))
    return [int(code or 0) for code in found]


def fault_code(response: httpx.Response) -> str:
    assert response.status_code == 500, response.text
    return next(fromstring(response.content).iter("faultcode")).text
