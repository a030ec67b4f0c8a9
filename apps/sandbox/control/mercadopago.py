"""Customers and banks of MercadoPago. Those marked * are told to the `notification_url` of the
preference, else to the webhook.

    pay *          preference_id or external_reference, status, detail → payment_id
    settle *       payment_id, status, detail: a payment comes to another status
    refund *       payment_id, amount_centavos (all of it, if none is given), key → refund_id
    charge_back *  payment_id → chargeback_id
    notify *       payment_id: the same news once more, with another id
    preferences    (a list) id, external_reference, notification_url
    payments       (a list) id, status, amount_centavos, refunded_centavos, external_reference
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, Final

from apps.sandbox.control.act import Acts, Given, one_of
from apps.sandbox.control.telling import Telling
from apps.sandbox.mercadopago import MercadoPago, Payment

_CHARGEBACKS: Final = "topic_chargebacks_wh"


class _Paid(Given, frozen=True, kw_only=True):
    preference_id: str = ""
    external_reference: str = ""
    status: str = "approved"
    detail: str | None = None


class _Payment(Given, frozen=True, kw_only=True):
    payment_id: int


class _Settled(_Payment, frozen=True, kw_only=True):
    status: str
    detail: str | None = None


class _Refund(_Payment, frozen=True, kw_only=True):
    amount_centavos: int | None = None
    key: str = ""


def mercadopago_acts(mercadopago: MercadoPago, telling: Telling) -> Acts:
    """What can happen."""
    acts, till = Acts(), _Till(mercadopago, telling)
    acts.on("pay", _Paid, till.pay)
    acts.on("settle", _Settled, till.settle)
    acts.on("refund", _Refund, till.refund)
    acts.on("charge_back", _Payment, till.charge_back)
    acts.on("notify", _Payment, till.notify)
    acts.things["preferences"] = lambda: _preferences(mercadopago)
    acts.things["payments"] = lambda: _payments(mercadopago)
    return acts


class _Till:
    def __init__(self, mercadopago: MercadoPago, telling: Telling) -> None:
        self._mp, self._account, self._telling = mercadopago, mercadopago.account, telling

    def pay(self, given: _Paid) -> dict[str, Any]:
        wanted = given.preference_id or self._find(given.external_reference)
        preference = one_of(self._account.preferences, wanted, "preference_id")
        url = self._url(preference)
        paid = self._mp.pay(preference["id"], given.status, given.detail)
        self._tell(url, paid.id, action="payment.created")
        return {"payment_id": paid.id, "status": paid.status}

    def settle(self, given: _Settled) -> dict[str, Any]:
        payment, url = self._payment(given)
        self._mp.settle(payment.id, given.status, given.detail)
        self._tell(url, payment.id)
        return {"payment_id": payment.id, "status": payment.status}

    def refund(self, given: _Refund) -> dict[str, Any]:
        payment, url = self._payment(given)
        key = given.key or secrets.token_hex(16)
        refund = self._mp.refund(payment, given.amount_centavos, key)
        self._tell(url, payment.id)
        return {"refund_id": refund.id, "status": payment.status}

    def charge_back(self, given: _Payment) -> dict[str, Any]:
        payment, url = self._payment(given)
        made = self._mp.charge_back(payment.id)
        self._tell(url, made.id, topic=_CHARGEBACKS, action="created")
        return {"chargeback_id": made.id}

    def notify(self, given: _Payment) -> dict[str, Any]:
        payment, url = self._payment(given)
        self._tell(url, payment.id)
        return {"payment_id": payment.id}

    def _payment(self, given: _Payment) -> tuple[Payment, str]:
        payment = one_of(self._account.payments, given.payment_id, "payment_id")
        return payment, self._url(payment.preference)

    def _find(self, reference: str) -> str:
        made = self._account.preferences.items()
        found = [id_ for id_, one in made if one.get("external_reference") == reference]
        if not reference or not found:
            raise LookupError(f"external_reference must be that of a preference, got {reference!r}")
        return found[-1]

    def _url(self, preference: Any) -> str:
        return self._telling.url("mercadopago", preference.get("notification_url", ""))

    def _tell(self, url: str, data_id: int | str, **more: Any) -> None:
        number = self._account.next_number()

        async def attempt() -> bool:
            """With the same id and a new signature: an old one is refused."""
            sent = await self._mp.notify(url, data_id, notification_id=number, **more)
            return self._mp.webhooks.is_taken(sent)

        self._telling.tell(attempt)


def _preferences(mercadopago: MercadoPago) -> Iterable[dict[str, Any]]:
    names = ("id", "external_reference", "notification_url")
    return [
        {name: one.get(name, "") for name in names}
        for one in mercadopago.account.preferences.values()
    ]


def _payments(mercadopago: MercadoPago) -> Iterable[dict[str, Any]]:
    return [
        {
            "id": one.id,
            "status": one.status,
            "amount_centavos": one.amount_centavos,
            "refunded_centavos": one.refunded_centavos,
            "external_reference": one.preference.get("external_reference", ""),
        }
        for one in mercadopago.account.payments.values()
    ]
