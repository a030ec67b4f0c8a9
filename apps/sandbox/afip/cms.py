"""Signed messages (CMS SignedData, RFC 5652) as WSAA takes them: one signer, the content inside.

The checks come in the order in which WSAA makes them: message, certificate, signature. Only DER is
read; WSAA takes BER as well.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from apps.sandbox.afip import der

_SIGNED_DATA: Final = bytes.fromhex("2a864886f70d010702")
_CONTENT_TYPE: Final = bytes.fromhex("2a864886f70d010903")
_MESSAGE_DIGEST: Final = bytes.fromhex("2a864886f70d010904")
_HASHES: Final[dict[bytes, hashes.HashAlgorithm]] = {
    bytes.fromhex("2b0e03021a"): hashes.SHA1(),  # noqa: S303 - AFIP's own specification asks for it
    bytes.fromhex("608648016503040201"): hashes.SHA256(),
}


class BadCms(Exception):
    """The message is refused with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Signed:
    """What was signed, and with which certificate."""

    content: bytes
    certificate: x509.Certificate


@dataclass(frozen=True, slots=True)
class _Message:
    content_type: bytes
    content: bytes | None
    certificates: list[x509.Certificate]
    issuer: bytes
    serial: int
    digest: bytes
    """The OID of the hash."""
    attributes: bytes | None
    """The signed attributes as written, tag included."""
    signature: bytes


def open_signed(data: bytes) -> Signed:
    """What is in a message whose signature is good; trust and dates are the caller's business."""
    try:
        message = _read(data)
    except (ValueError, IndexError):
        raise BadCms("cms.bad") from None
    certificate = _signer(message)
    if message.content is None or not _is_signed(message, message.content, certificate):
        raise BadCms("cms.sign.invalid")
    return Signed(message.content, certificate)


def _read(data: bytes) -> _Message:
    kind, wrapped = der.read_der(data).expect(der.SEQUENCE).parts()
    if kind.expect(der.OID).content != _SIGNED_DATA:
        raise der.BadDer("this is no signed data")
    _, _, inside, *more = der.read_der(wrapped.expect(der.FIRST).content).parts()
    content_type, *content = inside.expect(der.SEQUENCE).parts()
    sets = {one.tag: one for one in more}
    (signer,) = sets[der.SET].parts() if der.SET in sets else []
    certificates = sets[der.FIRST].parts() if der.FIRST in sets else []
    return _with_signer(
        content_type.expect(der.OID).content,
        _octets(content[0].expect(der.FIRST)) if content else None,
        [x509.load_der_x509_certificate(one.whole) for one in certificates],
        signer.expect(der.SEQUENCE).parts(),
    )


def _with_signer(
    content_type: bytes,
    content: bytes | None,
    certificates: list[x509.Certificate],
    signer: list[der.Value],
) -> _Message:
    _, sid, digest, *rest = signer
    issuer, serial = sid.expect(der.SEQUENCE).parts()
    attributes = rest.pop(0) if rest[0].tag == der.FIRST else None
    return _Message(
        content_type=content_type,
        content=content,
        certificates=certificates,
        issuer=issuer.whole,
        serial=int.from_bytes(serial.expect(der.INTEGER).content, signed=True),
        digest=digest.parts()[0].expect(der.OID).content,
        attributes=attributes and attributes.whole,
        signature=rest[1].expect(der.OCTETS).content,
    )


def _octets(wrapped: der.Value) -> bytes:
    return der.read_der(wrapped.content).expect(der.OCTETS).content


def _signer(message: _Message) -> x509.Certificate:
    for one in message.certificates:
        if one.serial_number == message.serial and one.issuer.public_bytes() == message.issuer:
            return one
    raise BadCms("cms.cert.notFound")


def _is_signed(message: _Message, content: bytes, certificate: x509.Certificate) -> bool:
    algorithm, key = _HASHES.get(message.digest), certificate.public_key()
    if algorithm is None or not isinstance(key, rsa.RSAPublicKey):
        return False
    if message.attributes is not None:
        if not _is_about(message, content, algorithm):
            return False
        # Signed as a SET, and written with the tag of a field.
        content = bytes([der.SET]) + message.attributes[1:]
    try:
        key.verify(message.signature, content, padding.PKCS1v15(), algorithm)
    except InvalidSignature:
        return False
    return True


def _is_about(message: _Message, content: bytes, algorithm: hashes.HashAlgorithm) -> bool:
    """Whether the signed attributes name this content."""
    try:
        found = _attributes(message.attributes or b"")
    except (ValueError, IndexError):
        return False
    digest = hashlib.new(algorithm.name, content).digest()
    return found.get(_MESSAGE_DIGEST) == digest and found.get(_CONTENT_TYPE) == message.content_type


def _attributes(written: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for one in der.read_der(written).parts():
        kind, values = one.expect(der.SEQUENCE).parts()
        found[kind.content] = values.parts()[0].content
    return found
