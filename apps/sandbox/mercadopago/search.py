"""Searches of payments and preferences, with their filters and pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from apps.sandbox.mercadopago.account import Payment
from apps.sandbox.mercadopago.refusal import Refused
from apps.sandbox.mercadopago.shown import payment_json
from apps.sandbox.mercadopago.status import STATUSES

_KNOWN: Final = frozenset(
    [
        "external_reference",
        "status",
        "range",
        "begin_date",
        "end_date",
        "sort",
        "criteria",
        "limit",
        "offset",
    ]
)
_MOST: Final = 100


def payments(all_: Iterable[Payment], query: Mapping[str, str]) -> dict[str, Any]:
    """A page of those that the filters let through."""
    if unknown := query.keys() - _KNOWN:
        raise Refused(400, f"unknown parameters: {', '.join(sorted(unknown))}")
    limit, offset = _number(query, "limit", 30), _number(query, "offset", 0)
    if not 1 <= limit <= _MOST:
        raise Refused(400, "limit is invalid")
    is_wanted = _Filter(query)
    found = sorted(filter(is_wanted, all_), key=lambda one: (one.created_at, one.id))
    if query.get("criteria") == "desc":
        found.reverse()
    return {
        "paging": {"total": len(found), "limit": limit, "offset": offset},
        "results": [payment_json(one) for one in found[offset : offset + limit]],
    }


def preferences(all_: Iterable[Mapping[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Those of one reference; the links are not shown here."""
    wanted = query.get("external_reference")
    if not wanted:
        raise Refused(400, "invalid query", error="ds_search_query")
    shown = ("id", "client_id", "collector_id", "date_created", "external_reference")
    found = [one for one in all_ if one.get("external_reference") == wanted]
    elements = [{name: one[name] for name in shown} for one in found]
    return {"elements": elements, "next_offset": len(elements), "total": len(elements)}


class _Filter:
    """Whether a payment is looked for."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self.reference, self.status = query.get("external_reference"), query.get("status")
        if self.status not in (None, *STATUSES):
            raise Refused(400, "status is invalid")
        if query.get("range", "date_created") != "date_created":
            raise Refused(400, "range is invalid")
        self.begin, self.end = _instant(query, "begin_date"), _instant(query, "end_date")
        if (self.begin or self.end) and "range" not in query:
            raise Refused(400, "range is needed with begin_date and end_date")

    def __call__(self, payment: Payment) -> bool:
        reference = payment.preference.get("external_reference")
        return (
            self.reference in (None, reference)
            and self.status in (None, payment.status)
            and (self.begin is None or payment.created_at >= self.begin)
            and (self.end is None or payment.created_at <= self.end)
        )


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not text.isdecimal():
        raise Refused(400, f"{name} is invalid")
    return int(text)


def _instant(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name)
    try:
        instant = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise Refused(400, f"{name} is invalid") from None
    if instant is not None and instant.tzinfo is None:
        raise Refused(400, f"{name} is invalid")
    return instant
