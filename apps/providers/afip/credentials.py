"""The certificate and key with which a business, or its delegate, signs requests to WSAA."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key, pkcs7
from cryptography.x509.oid import NameOID

from apps.providers.afip.cuit import parse_cuit
from apps.providers.afip.errors import Invalid, LoginRefused

_LOGIN = "loginCms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A certificate of AFIP's and its key, in PEM.

    The CUIT in the certificate is that of who signs. It may issue for others that have delegated to
    it; they share its tickets.
    """

    certificate_pem: bytes = field(repr=False)
    key_pem: bytes = field(repr=False)

    @property
    def cuit(self) -> str:
        """Whose certificate it is: its subject says `serialNumber=CUIT 20123456786`."""
        names = self.certificate.subject.get_attributes_for_oid(NameOID.SERIAL_NUMBER)
        text = str(names[0].value) if names else ""
        try:
            return parse_cuit(text.removeprefix("CUIT "))
        except Invalid:
            raise _unusable("the certificate's serial number must be a cuit") from None

    @property
    def certificate(self) -> x509.Certificate:
        """The certificate, read."""
        return _read(self.certificate_pem)

    @property
    def fingerprint(self) -> bytes:
        """What tells this certificate from others of the same CUIT."""
        return self.certificate.fingerprint(hashes.SHA256())

    def sign(self, content: bytes) -> bytes:
        """CMS SignedData with the content and the certificate inside, in DER."""
        certificate, key = self.certificate, self._key()
        builder = pkcs7.PKCS7SignatureBuilder().set_data(content)
        signed = builder.add_signer(certificate, key, hashes.SHA256())
        return signed.sign(Encoding.DER, [pkcs7.PKCS7Options.Binary])

    def _key(self) -> rsa.RSAPrivateKey:
        try:
            key = load_pem_private_key(self.key_pem, password=None)
        except (ValueError, TypeError):
            raise _unusable("the key must be readable PEM without a password") from None
        if not isinstance(key, rsa.RSAPrivateKey):
            raise _unusable("the key must be an RSA key")
        return key


CredentialSource = Callable[[str], Awaitable[Credentials]]
"""Finds the credentials to use for a CUIT: its own, or those of its delegate."""


@lru_cache(maxsize=1024)
def _read(certificate_pem: bytes) -> x509.Certificate:
    """Each certificate once: every call asks for the CUIT in it."""
    try:
        return x509.load_pem_x509_certificate(certificate_pem)
    except ValueError:
        raise _unusable("the certificate must be readable PEM") from None


def _unusable(message: str) -> LoginRefused:
    return LoginRefused(message, operation=_LOGIN, code="unusable")
