"""What a preference must be; names that MercadoPago does not know are refused, not passed over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, cast
from urllib.parse import urlsplit

from apps.sandbox.mercadopago.refusal import Refused

_KNOWN: Final = frozenset(
    [
        "items",
        "payer",
        "back_urls",
        "auto_return",
        "payment_methods",
        "notification_url",
        "statement_descriptor",
        "external_reference",
        "expires",
        "expiration_date_from",
        "expiration_date_to",
        "date_of_expiration",
        "binary_mode",
        "metadata",
    ]
)
_KNOWN_OF_ITEM: Final = frozenset(
    [
        "id",
        "title",
        "description",
        "picture_url",
        "category_id",
        "quantity",
        "currency_id",
        "unit_price",
    ]
)
_CURRENCIES: Final = frozenset({"ARS", "BRL", "CLP", "COP", "MXN", "PEN", "UYU", "USD"})
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}([+-]\d\d:\d\d|Z)")
_LONGEST: Final = 256


def check_preference(body: Any) -> Mapping[str, Any]:
    """The preference, if it is one."""
    preference = _object("body", body, _KNOWN)
    items = preference.get("items")
    if not isinstance(items, list) or not items:
        raise Refused(400, "items needed")
    for one in cast("list[Any]", items):
        _check_item(_object("items", one, _KNOWN_OF_ITEM))
    _check_reference(preference)
    _check_addresses(preference)
    _check_expiry(preference)
    return preference


def centavos_of(value: Any) -> int:
    """The centavos of a positive number of at most two decimals."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise Refused(400, "amount attribute must be numeric", code=4041)
    centavos = Decimal(value) * 100
    if centavos <= 0:
        raise Refused(400, "amount attribute must be positive", code=4040)
    if centavos % 1:
        raise Refused(400, "amount must have at most two decimals")
    return int(centavos)


def _check_item(item: Mapping[str, Any]) -> None:
    title, quantity = item.get("title"), item.get("quantity")
    if not isinstance(title, str) or not 0 < len(title) <= _LONGEST:
        raise Refused(400, "title is invalid")
    if isinstance(quantity, bool) or not isinstance(quantity, int) or quantity < 1:
        raise Refused(400, "quantity is invalid")
    if item.get("currency_id", "ARS") not in _CURRENCIES:
        raise Refused(400, "currency_id is invalid")
    if "unit_price" not in item:
        raise Refused(400, "unit_price needed")
    centavos_of(item["unit_price"])


def _check_reference(preference: Mapping[str, Any]) -> None:
    reference = preference.get("external_reference", "")
    if not isinstance(reference, str) or len(reference) > _LONGEST:
        raise Refused(400, "external_reference is invalid")


def _check_addresses(preference: Mapping[str, Any]) -> None:
    back = _object("back_urls", preference.get("back_urls", {}), {"success", "failure", "pending"})
    given = [*back.values(), *filter(None, [preference.get("notification_url")])]
    if not all(isinstance(one, str) and _is_url(one) for one in given):
        raise Refused(400, "an url is invalid")
    if preference.get("auto_return") not in (None, "approved", "all"):
        raise Refused(400, "auto_return is invalid")
    if preference.get("auto_return") and not back.get("success"):
        raise Refused(400, "auto_return invalid. back_url.success must be defined")


def _check_expiry(preference: Mapping[str, Any]) -> None:
    for name in ("expiration_date_from", "expiration_date_to", "date_of_expiration"):
        value = preference.get(name)
        if value is not None and not (isinstance(value, str) and _is_instant(value)):
            raise Refused(400, f"{name} must be an ISO 8601 instant with milliseconds and offset")


def _is_instant(text: str) -> bool:
    try:
        return bool(_INSTANT.fullmatch(text)) and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def _object(name: str, value: Any, known: frozenset[str] | set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Refused(400, f"{name} must be an object")
    members = cast("dict[str, Any]", value)
    if unknown := sorted(members.keys() - known):
        raise Refused(400, f"{name} has unknown attributes: {', '.join(unknown)}")
    return members
