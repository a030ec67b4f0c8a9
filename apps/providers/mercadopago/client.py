"""A client of MercadoPago's API: preferences, payments, refunds, chargebacks.

Writes are never repeated here. A refund carries the idempotency key of the caller, who must make it
of what is refunded and keep it over all attempts: the same key and amount are the same refund.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Callable
from typing import Final, TypeVar

import httpx

from apps.providers.mercadopago.amount import check_centavos, to_json
from apps.providers.mercadopago.errors import Invalid
from apps.providers.mercadopago.exchange import Exchange, Request
from apps.providers.mercadopago.fields import Fields
from apps.providers.mercadopago.payment import (
    Chargeback,
    Payment,
    PaymentPage,
    PaymentSearch,
    Refund,
    check_per_page,
)
from apps.providers.mercadopago.preference import Checkout, Preference
from apps.providers.mercadopago.settings import Settings
from apps.providers.reading import Unreadable

_NUMBER: Final = re.compile(r"\d{1,20}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_KEY: Final = 64
T = TypeVar("T")


class Client:
    """Speaks to one account; the connections are the caller's."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self._exchange = Exchange(settings, http)

    async def create_preference(self, preference: Preference) -> Checkout:
        """Make a link at which a customer pays."""
        request = Request(method="POST", path="/checkout/preferences", body=preference.as_json())
        return await self._exchange.ask(request, Checkout.read)

    async def get_preference(self, preference_id: str) -> Checkout:
        """A link that was made."""
        path = f"/checkout/preferences/{_checked(_NAME, 'preference_id', preference_id)}"
        return await self._exchange.ask(Request(method="GET", path=path), Checkout.read)

    async def find_preferences(self, external_reference: str) -> list[str]:
        """The ids of those made for one thing: what to ask when it is unknown whether one was."""
        query = {"external_reference": external_reference}
        request = Request(method="GET", path="/checkout/preferences/search", query=query)
        return await self._exchange.ask(request, _read_ids)

    async def get_payment(self, payment_id: str) -> Payment:
        """One payment as it is now."""
        path = f"/v1/payments/{_checked(_NUMBER, 'payment_id', payment_id)}"

        def read(value: object) -> Payment:
            return _about(Payment.read(value), lambda one: one.id == payment_id)

        return await self._exchange.ask(Request(method="GET", path=path), read)

    async def search_payments(
        self, search: PaymentSearch, *, limit: int = 50, offset: int = 0
    ) -> PaymentPage:
        """One page of what is looked for."""
        query = {**search.as_query(), "limit": check_per_page(limit), "offset": offset}
        request = Request(method="GET", path="/v1/payments/search", query=query)

        def read(value: object) -> PaymentPage:
            return _about(PaymentPage.read(value), lambda page: page.offset == offset)

        return await self._exchange.ask(request, read)

    async def all_payments(
        self, search: PaymentSearch, *, limit: int = 50
    ) -> AsyncGenerator[Payment]:
        """All that is looked for, page by page, each once."""
        offset: int | None = 0
        seen: set[str] = set()
        while offset is not None:
            page = await self.search_payments(search, limit=limit, offset=offset)
            for one in page.payments:
                if one.id not in seen:  # one that comes in between shifts the pages
                    seen.add(one.id)
                    yield one
            offset = page.next_offset

    async def refund(
        self, payment_id: str, *, key: str, amount_centavos: int | None = None
    ) -> Refund:
        """Give money back: all of it that is left, or an amount; once for each `key`."""
        path = f"/v1/payments/{_checked(_NUMBER, 'payment_id', payment_id)}/refunds"
        amount = amount_centavos
        body = None if amount is None else {"amount": to_json(check_centavos("amount", amount))}

        def read(value: object) -> Refund:
            return _about(
                Refund.read(value),
                lambda one: one.payment_id == payment_id and amount in (None, one.amount_centavos),
            )

        request = Request(method="POST", path=path, body=body, key=_header_of(key))
        return await self._exchange.ask(request, read)

    async def get_refunds(self, payment_id: str) -> list[Refund]:
        """What was given back of a payment."""
        path = f"/v1/payments/{_checked(_NUMBER, 'payment_id', payment_id)}/refunds"
        return await self._exchange.ask(Request(method="GET", path=path), _read_refunds)

    async def get_chargeback(self, chargeback_id: str) -> Chargeback:
        """One chargeback as it is now."""
        path = f"/v1/chargebacks/{_checked(_NAME, 'chargeback_id', chargeback_id)}"
        return await self._exchange.ask(Request(method="GET", path=path), Chargeback.read)


def _checked(pattern: re.Pattern[str], what: str, value: str) -> str:
    """An id that may stand in a path: those of notifications are a stranger's words."""
    if not pattern.fullmatch(value):
        raise Invalid(f"{what} must be an id of mercadopago, got {len(value)} characters")
    return value


def _header_of(key: str) -> str:
    """The key itself, or a digest of one that is long or not plain ASCII: as stable as the key."""
    if not key:
        raise Invalid("key must be given, got none")
    is_plain = key.isascii() and key.isprintable() and " " not in key
    if is_plain and len(key) <= _LONGEST_KEY:
        return key
    return hashlib.sha256(key.encode()).hexdigest()


def _about(found: T, is_wanted: Callable[[T], bool]) -> T:
    if not is_wanted(found):
        raise Unreadable("it is about something else")
    return found


def _read_ids(value: object) -> list[str]:
    return [Fields(one).text("id") for one in Fields(value).items("elements")]


def _read_refunds(value: object) -> list[Refund]:
    return [Refund.read(one) for one in Fields({"refunds": value}).items("refunds")]
