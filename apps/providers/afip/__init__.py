"""AFIP (now ARCA), the tax office of Argentina: electronic invoices with WSFEv1 and WSAA.

cuit          tax numbers and their check digits
kinds         code tables
voucher       what is sent
answers       what comes back
errors        what goes wrong
credentials   certificates and keys
tickets       WSAA's tickets: the store's protocol, and when a new one is asked for
client        the operations
qr            the address in the QR code of a voucher
upstream      AFIP as an upstream of Faena
"""

from apps.providers.afip.answers import (
    Authorized,
    Different,
    Issued,
    NotIssued,
    Remark,
    ServerStatus,
)
from apps.providers.afip.client import Client
from apps.providers.afip.credentials import Credentials, CredentialSource
from apps.providers.afip.cuit import format_cuit, is_cuit, parse_cuit
from apps.providers.afip.errors import (
    AfipError,
    ClockSkewed,
    Invalid,
    LoginRefused,
    NotAuthorized,
    NumberTaken,
    Permanent,
    RateLimited,
    Rejected,
    Retryable,
    TicketHeld,
    UnknownOutcome,
)
from apps.providers.afip.kinds import Concept, DocumentKind, VatCondition, VatRate, VoucherKind
from apps.providers.afip.qr import qr_url
from apps.providers.afip.settings import Settings
from apps.providers.afip.tickets import MemoryTicketStore, Ticket, TicketStore
from apps.providers.afip.upstream import afip_upstream
from apps.providers.afip.voucher import (
    Associated,
    Period,
    Receiver,
    Service,
    Tribute,
    VatLine,
    Voucher,
)

__all__ = [
    "AfipError",
    "Associated",
    "Authorized",
    "Client",
    "ClockSkewed",
    "Concept",
    "CredentialSource",
    "Credentials",
    "Different",
    "DocumentKind",
    "Invalid",
    "Issued",
    "LoginRefused",
    "MemoryTicketStore",
    "NotAuthorized",
    "NotIssued",
    "NumberTaken",
    "Period",
    "Permanent",
    "RateLimited",
    "Receiver",
    "Rejected",
    "Remark",
    "Retryable",
    "ServerStatus",
    "Service",
    "Settings",
    "Ticket",
    "TicketHeld",
    "TicketStore",
    "Tribute",
    "UnknownOutcome",
    "VatCondition",
    "VatLine",
    "VatRate",
    "Voucher",
    "VoucherKind",
    "afip_upstream",
    "format_cuit",
    "is_cuit",
    "parse_cuit",
    "qr_url",
]
