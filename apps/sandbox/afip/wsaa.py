"""WSAA: verifies a signed request and gives a ticket; faults as Axis writes them.

Not like the real one: SOAP 1.2 is not spoken, and there is no WSDL.
"""

from __future__ import annotations

import base64
import secrets
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from cryptography import x509
from cryptography.x509.oid import NameOID
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring
from starlette.responses import Response

from apps.sandbox.afip.access_request import (
    ARGENTINA,
    AccessRequest,
    BadRequest,
    check_request,
    read_request,
)
from apps.sandbox.afip.authority import Authority
from apps.sandbox.afip.cms import BadCms, open_signed
from apps.sandbox.afip.registry import Business, Registry
from apps.sandbox.afip.terms import Terms
from apps.sandbox.afip.tokens import WSAA_NAME, Grant, Mint
from apps.sandbox.afip.xml import DECLARATION, SCHEMAS, SOAP, node, xml_response
from apps.sandbox.stand_in import Reply

SERVICES: Final = frozenset({"wsfe", "wsfex", "ws_sr_constancia_inscripcion", "wsmtxca"})
_NAMESPACE: Final = "http://wsaa.view.sua.dvadac.desein.afip.gov"
_AXIS: Final = "http://xml.apache.org/axis/"
_EXCEPTION: Final = "gov.afip.desein.dvadac.sua.view.wsaa.LoginFault"

_TEXTS: Final = {
    "cms.bad": "El CMS no es valido",
    "cms.bad.base64": "No se puede decodificar el BASE64",
    "cms.cert.notFound": "No se ha encontrado certificado de firmador",
    "cms.sign.invalid": "Firma inválida o algoritmo no soportado",
    "cms.cert.expired": "Certificado expirado",
    "cms.cert.invalid": "Certificado con fecha de generacion posterior a la actual",
    "cms.cert.untrusted": "Certificado no emitido por AC de confianza",
    "coe.notAuthorized": "Computador no autorizado a acceder al servicio",
    "coe.alreadyAuthenticated": "El CEE ya posee un TA valido para el acceso al WSN solicitado",
    "xml.bad": "No se ha podido interpretar el XML contra el SCHEMA",
    "xml.generationTime.invalid": "generationTime posee formato o dato inválido "
    "(ej: en el futuro o más de 24 horas de antigüedad)",
    "wsn.notFound": "Servicio informado inexistente",
    "wsaa.unavailable": "El servicio de autenticación/autorización se encuentra momentáneamente "
    "fuera de servicio",
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that is in order."""

    request: AccessRequest
    business: Business
    subject: str


class Login:
    """Gives out tickets."""

    def __init__(
        self,
        authority: Authority,
        registry: Registry,
        mint: Mint,
        terms: Terms,
        now: Callable[[], datetime],
    ) -> None:
        self._authority, self._registry, self._mint = authority, registry, mint
        self._terms, self._now = terms, now
        self._given: dict[tuple[str, str], datetime] = {}
        """When the last ticket was given, by name in the certificate and service."""

    def answer(self, action: str | None, body: bytes, *, is_wrong: bool = False) -> Reply:
        """What a request gets: a ticket, or a fault with status 500."""
        if action is None:
            return _refused("ns1:Client.NoSOAPAction", "no SOAPAction header!")
        try:
            signed = _signed_text(body)
        except (ParseError, DefusedXmlException, ValueError, LookupError):
            return _refused("soapenv:Server.userException", "org.xml.sax.SAXParseException")
        if signed is None:
            problem = "javax.ejb.EJBException: java.lang.NullPointerException"
            return _refused("soapenv:Server.userException", problem)
        try:
            asked = self._check(signed)
        except (BadCms, BadRequest) as refusal:
            return login_fault(refusal.code)
        return self._give(asked, is_wrong=is_wrong)

    def _check(self, signed: str) -> _Asked:
        """In the order of the real one, as far as that is known."""
        try:
            data = base64.b64decode("".join(signed.split()), validate=True)
        except (Base64Error, ValueError):
            raise BadCms("cms.bad.base64") from None
        if not data:
            raise BadCms("cms.bad.base64")
        message = open_signed(data)
        self._check_certificate(message.certificate)
        cuit, subject = _owner(message.certificate)
        request = read_request(message.content)
        check_request(request, subject, self._now())
        if request.service not in SERVICES:
            raise BadRequest("wsn.notFound")
        business = self._registry.businesses.get(cuit)
        if business is None or request.service not in business.services:
            raise BadRequest("coe.notAuthorized")
        given = self._given.get((subject, request.service))
        if given is not None and self._now() < given + self._terms.guard_window:
            raise BadRequest("coe.alreadyAuthenticated")
        return _Asked(request, business, subject)

    def _check_certificate(self, certificate: x509.Certificate) -> None:
        now = self._now()
        if certificate.not_valid_before_utc > now:
            raise BadCms("cms.cert.invalid")
        if certificate.not_valid_after_utc < now:
            raise BadCms("cms.cert.expired")
        if not self._authority.has_issued(certificate):
            raise BadCms("cms.cert.untrusted")

    def _give(self, asked: _Asked, *, is_wrong: bool) -> Reply:
        now, service = self._now(), asked.request.service
        grant = Grant(
            service=service,
            subject=asked.subject,
            relations=frozenset({asked.business.cuit, *asked.business.represents}),
            since=now,
            until=now + self._terms.ticket_life,
        )
        self._given[asked.subject, service] = now
        token, sign = self._mint.make(grant)
        ticket = _ticket(grant, token, sign[::-1] if is_wrong else sign)
        content = node("loginCmsReturn", ticket)
        answer = f'<loginCmsResponse xmlns="{_NAMESPACE}">{content}</loginCmsResponse>'
        subject = f"{asked.business.cuit}/{service}"
        return Reply(response=_envelope(answer), subject=subject)


def login_fault(code: str) -> Reply:
    """A refusal of WSAA's own."""
    exception = f'<ns2:exceptionName xmlns:ns2="{_AXIS}">{_EXCEPTION}</ns2:exceptionName>'
    return _refused(f"ns1:{code}", _TEXTS.get(code, code), exception)


def _refused(code: str, text: str, exception: str = "") -> Reply:
    host = f'<ns3:hostname xmlns:ns3="{_AXIS}">wsaa.sandbox</ns3:hostname>'
    fault = (
        f'<soapenv:Fault><faultcode xmlns:ns1="{_AXIS}">{code}</faultcode>'
        f"<faultstring>{escape(text)}</faultstring><detail>{exception}{host}</detail>"
        "</soapenv:Fault>"
    )
    detail = {"code": code.rpartition(":")[2]}
    return Reply(response=_envelope(fault, 500), outcome="refused", detail=detail)


def _envelope(content: str, status: int = 200) -> Response:
    return xml_response(
        f'{DECLARATION}<soapenv:Envelope xmlns:soapenv="{SOAP}" {SCHEMAS}>'
        f"<soapenv:Body>{content}</soapenv:Body></soapenv:Envelope>",
        status,
    )


def _signed_text(body: bytes) -> str | None:
    """What `in0` holds, in whatever namespace; None if there is none."""
    root: Element = fromstring(body, forbid_dtd=True)
    if root.tag != f"{{{SOAP}}}Envelope":
        raise ValueError("this is no envelope")
    login = next((one for one in root.iter() if _local(one) == "loginCms"), None)
    found = None if login is None else next((one for one in login if _local(one) == "in0"), None)
    return None if found is None else found.text or ""


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _owner(certificate: x509.Certificate) -> tuple[int, str]:
    """The CUIT in a certificate, and its name as WSAA writes it."""
    names = {one.oid: str(one.value) for one in certificate.subject}
    serial, alias = names.get(NameOID.SERIAL_NUMBER, ""), names.get(NameOID.COMMON_NAME, "")
    kind, _, cuit = serial.partition(" ")
    if kind != "CUIT" or not (cuit.isascii() and cuit.isdigit()):
        raise BadRequest("coe.notAuthorized")
    return int(cuit), f"SERIALNUMBER={serial}, CN={alias}"


def _ticket(grant: Grant, token: str, sign: str) -> str:
    """As the real one indents it."""
    since, until = (_shown(one) for one in (grant.since, grant.until))
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
        '<loginTicketResponse version="1">\n    <header>\n'
        f"        <source>{WSAA_NAME}</source>\n"
        f"        <destination>{escape(grant.subject)}</destination>\n"
        f"        <uniqueId>{secrets.randbits(32)}</uniqueId>\n"
        f"        <generationTime>{since}</generationTime>\n"
        f"        <expirationTime>{until}</expirationTime>\n"
        "    </header>\n    <credentials>\n"
        f"        <token>{token}</token>\n        <sign>{sign}</sign>\n"
        "    </credentials>\n</loginTicketResponse>\n"
    )


def _shown(instant: datetime) -> str:
    return instant.astimezone(ARGENTINA).isoformat(timespec="milliseconds")
