"""What the codes of WSAA and WSFEv1 mean to a caller.

The texts that AFIP sends vary between environments and are partly unaccented: only codes count.
Errors are told in our own words, so that no text from outside gets into logs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

INTERNAL: Final = frozenset({500, 501, 502})
"""AFIP is in trouble; after a request for a CAE the outcome is unknown."""
NOT_AUTHENTICATED: Final = frozenset({600, 601})
"""The ticket is not accepted, or does not cover the CUIT."""
NO_DATA: Final = 602
NOT_NEXT: Final = 10016
"""Among the errors: the number is not the next one, or the date is before that of the last voucher.
Among the observations: the date is outside of the window."""

CLOCK: Final = frozenset(
    {"xml.generationTime.invalid", "xml.expirationTime.expired", "xml.expirationTime.invalid"}
)
ALREADY_AUTHENTICATED: Final = "coe.alreadyAuthenticated"
DOWN: Final = frozenset({"wsn.unavailable", "wsaa.unavailable", "wsaa.internalError"})
LOGIN_FAMILIES: Final = ("coe.", "cms.", "xml.", "wsn.", "Client.")
"""What these codes begin with is the caller's fault, and stays so until it is mended."""

_MEANINGS: Final = {
    500: "internal error of the application",
    501: "internal error of the database",
    502: "error of the database while authorising",
    600: "the ticket is not accepted",
    601: "the ticket does not cover the cuit",
    602: "no data",
    10000: "the issuer is not registered to issue",
    10001: "the count of vouchers is out of range",
    10002: "the count of vouchers is not that of the details",
    10003: "too many vouchers",
    10004: "the point of sale is out of range",
    10005: "the point of sale is not open for web services",
    10006: "the kind of voucher is missing",
    10007: "the kind of voucher is not known",
    10008: "the number is out of range",
    10010: "the last number is out of range",
    10011: "the last number must not differ from the first",
    10012: "the last number must not differ from the first",
    10013: "the receiver must have a cuit",
    10014: "the amount is too large for a batch",
    10015: "the receiver's document is missing or wrong",
    10016: "the number or the date is not the next one, or the date is outside of the window",
    10018: "vat lines are missing, or present without vat",
    10019: "the vat rate is not known",
    10020: "the base of a vat line must be above zero",
    10021: "the amount of a vat line must not be below zero",
    10022: "a vat rate is repeated",
    10023: "vat is not the sum of its lines",
    10024: "tributes are missing, or present without an amount",
    10029: "tributes are not the sum of their lines",
    10030: "the concept is not known",
    10031: "the first day of the service is missing",
    10032: "the service ends before it begins",
    10033: "the last day of the service is missing",
    10035: "the day of payment is missing",
    10036: "the day of payment is before the date of the voucher",
    10037: "the currency is not known",
    10038: "the exchange rate is missing or wrong",
    10039: "the exchange rate of pesos must be 1",
    10040: "a voucher of this kind cannot be associated",
    10048: "the total is not the sum of its parts",
    10049: "the days of the service are missing",
    10051: "the amount of a vat line does not follow from its rate",
    10056: "an amount has too many digits",
    10061: "the net amount is not the sum of the bases of vat",
    10069: "issuer and receiver are the same",
    10070: "vat lines are missing",
    10071: "vouchers of class c have no vat lines",
    10104: "the point of sale is not known",
    10119: "the exchange rate is too far from the official one",
    10152: "a date ahead must be in this month",
    10197: "a note must name the vouchers or the period that it is about",
    10198: "an invoice must not name a period of vouchers",
    10200: "the point of sale is missing",
    10201: "the kind of voucher is missing or wrong",
    10202: "the number is missing",
    10242: "the receiver's vat condition is not known",
    10243: "the receiver's vat condition does not suit the class of voucher",
    10246: "the receiver's vat condition is missing",
    10247: "the receiver's cuit is inactive or wrong",
    10248: "the receiver is limited as untrusted",
    11000: "the point of sale is out of range",
    11001: "the kind of voucher is not known",
    11002: "the point of sale is not open for web services",
}


def meaning(code: int) -> str:
    """The code, and what it means if that is known."""
    return f"{code}: {_MEANINGS[code]}" if code in _MEANINGS else f"{code}"


def meanings(codes: Iterable[int]) -> str:
    """Several, each once, in the order in which they came."""
    return "; ".join(meaning(code) for code in dict.fromkeys(codes)) or "no code"
