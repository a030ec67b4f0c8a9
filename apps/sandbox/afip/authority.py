"""The office that certifies the computers of businesses; made anew with each sandbox."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_YEARS: Final = timedelta(days=3650)


class Credential(NamedTuple):
    """What a business needs to log in."""

    key_pem: bytes
    certificate_pem: bytes


class Authority:
    """Signs certificates, and knows its own."""

    def __init__(self, now: datetime) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = x509.Name(
            [
                x509.NameAttribute(NameOID.COUNTRY_NAME, "AR"),
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "AFIP"),
                x509.NameAttribute(NameOID.COMMON_NAME, "Computadores Sandbox"),
            ]
        )
        self._certificate = self._signed(
            self._name, self._key.public_key(), (now - _YEARS, now + _YEARS), is_authority=True
        )

    def issue(self, cuit: int, alias: str, since: datetime, until: datetime) -> Credential:
        """A new key and its certificate."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return self.certify(key, cuit, alias, (since, until))

    def certify(
        self, key: rsa.RSAPrivateKey, cuit: int, alias: str, validity: tuple[datetime, datetime]
    ) -> Credential:
        """A certificate for a key; the subject says whose it is."""
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, alias),
                x509.NameAttribute(NameOID.SERIAL_NUMBER, f"CUIT {cuit}"),
            ]
        )
        certificate = self._signed(subject, key.public_key(), validity, is_authority=False)
        return Credential(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            certificate.public_bytes(Encoding.PEM),
        )

    def has_issued(self, certificate: x509.Certificate) -> bool:
        """Whether it is one of ours."""
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def _signed(
        self,
        subject: x509.Name,
        key: rsa.RSAPublicKey,
        validity: tuple[datetime, datetime],
        *,
        is_authority: bool,
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(validity[0])
            .not_valid_after(validity[1])
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        return builder.sign(self._key, hashes.SHA256())
