"""Whether a voucher on AFIP's record is the one that was sent."""

from __future__ import annotations

from apps.providers.afip.answers import Issued
from apps.providers.afip.voucher import Voucher


def differences(voucher: Voucher, issued: Issued) -> tuple[str, ...]:
    """The fields in which the two are not the same.

    Two invoices may look alike in all of them. That is why a number must be written down with its
    invoice before it is used.
    """
    receiver = voucher.receiver
    pairs = {
        "number": ((voucher.number, voucher.number), (issued.first_number, issued.last_number)),
        "emission": ("CAE", issued.emission),
        "date": (voucher.date, issued.date),
        "concept": (voucher.concept, issued.concept),
        "document": (
            (receiver.document_kind, receiver.document_number),
            (issued.document_kind, issued.document_number),
        ),
        "total": (voucher.total_cents, issued.total_cents),
        "net": (voucher.net_cents, issued.net_cents),
        "untaxed": (voucher.untaxed_cents, issued.untaxed_cents),
        "exempt": (voucher.exempt_cents, issued.exempt_cents),
        "tributes": (voucher.tributes_cents, issued.tributes_cents),
        "vat": (voucher.vat_cents, issued.vat_cents),
        "currency": (voucher.currency, issued.currency),
    }
    return tuple(name for name, (sent, found) in pairs.items() if sent != found)
