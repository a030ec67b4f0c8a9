"""The state of one account: preferences, payments, refunds, chargebacks, idempotency keys."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from apps.sandbox.mercadopago.preference_check import centavos_of
from apps.sandbox.mercadopago.refusal import Refused
from apps.sandbox.mercadopago.status import check_detail, check_step

KEY_LIFE: Final = timedelta(hours=24)
REFUND_LIFE: Final = timedelta(days=180)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    """Money that went back."""

    id: int
    payment_id: int
    amount_centavos: int
    created_at: datetime


@dataclass(slots=True, kw_only=True)
class Payment:
    """One payment; what was refunded is the sum of its refunds."""

    id: int
    preference: Mapping[str, Any]
    amount_centavos: int
    status: str
    status_detail: str
    created_at: datetime
    updated_at: datetime
    approved_at: datetime | None = None
    refunds: list[Refund] = field(default_factory=list[Refund])

    @property
    def refunded_centavos(self) -> int:
        """What went back."""
        return sum(one.amount_centavos for one in self.refunds)

    def turn(self, status: str, detail: str | None, at: datetime) -> None:
        """Give it another status."""
        self.status_detail = check_detail(status, detail)
        self.status, self.updated_at = status, at
        if status == "approved" and self.approved_at is None:
            self.approved_at = at


@dataclass(frozen=True, slots=True, kw_only=True)
class Chargeback:
    """A payment that the payer's bank takes back."""

    id: str
    payment_id: int
    amount_centavos: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """An idempotency key: what was asked with it, and what came of it."""

    fingerprint: str
    refund: Refund
    at: datetime


class Account:
    """What MercadoPago knows of a seller."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.collector_id = 202_809_963
        self.preferences: dict[str, Mapping[str, Any]] = {}
        self.payments: dict[int, Payment] = {}
        self.chargebacks: dict[str, Chargeback] = {}
        self.keys: dict[str, Used] = {}
        self._numbers = itertools.count(1_000_000_001)

    def next_number(self) -> int:
        """An id that was not given before."""
        return next(self._numbers)

    def prefer(self, preference: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep a preference; the same request makes another one, since there is no key."""
        id_ = f"{self.collector_id}-{uuid.uuid4()}"
        link = f"https://www.mercadopago.com.ar/checkout/v1/redirect?pref_id={id_}"
        kept = {
            **preference,
            "id": id_,
            "init_point": link,
            "sandbox_init_point": link.replace("www.", "sandbox.", 1),
            "collector_id": self.collector_id,
            "client_id": "6295877106812064",
            "date_created": instant(self.now()),
        }
        self.preferences[id_] = kept
        return kept

    def pay(self, preference_id: str, status: str, detail: str | None) -> Payment:
        """A customer pays what a preference asks for."""
        preference, now = self.preferences[preference_id], self.now()
        amount = sum(
            centavos_of(one["unit_price"]) * one["quantity"] for one in preference["items"]
        )
        paid = Payment(
            id=self.next_number(),
            preference=preference,
            amount_centavos=amount,
            status="pending",
            status_detail="pending_waiting_payment",
            created_at=now,
            updated_at=now,
        )
        paid.turn(status, detail, now)
        self.payments[paid.id] = paid
        return paid

    def settle(self, payment_id: int, status: str, detail: str | None) -> Payment:
        """Something happens to a payment."""
        payment = self.payments[payment_id]
        check_step(payment.status, status)
        payment.turn(status, detail, self.now())
        return payment

    def charge_back(self, payment_id: int) -> Chargeback:
        """The payer's bank takes a payment back."""
        payment = self.settle(payment_id, "charged_back", "in_process")
        found = Chargeback(
            id=f"2170{self.next_number()}",
            payment_id=payment.id,
            amount_centavos=payment.amount_centavos,
            created_at=payment.updated_at,
        )
        self.chargebacks[found.id] = found
        return found

    def refund(self, payment: Payment, amount: int | None, key: str, fingerprint: str) -> Refund:
        """Give money back; the same key and request are the same refund."""
        if used := self._used(key):
            if used.fingerprint != fingerprint:
                message = "the key was used with another request"
                raise Refused(409, message, error="idempotency_key_already_used")
            return used.refund
        made = self._give_back(payment, amount)
        self.keys[key] = Used(fingerprint=fingerprint, refund=made, at=made.created_at)
        return made

    def _used(self, key: str) -> Used | None:
        used = self.keys.get(key)
        return used if used and self.now() - used.at < KEY_LIFE else None

    def _give_back(self, payment: Payment, amount: int | None) -> Refund:
        now, left = self.now(), payment.amount_centavos - payment.refunded_centavos
        if payment.status != "approved" or payment.approved_at is None:
            message = "The action requested is not valid for the current payment state"
            raise Refused(400, message, code=2063)
        if now - payment.approved_at > REFUND_LIFE:
            raise Refused(404, "Payment too old to be refunded", code=2024)
        if amount is not None and amount > left:
            raise Refused(400, "the amount exceeds what is left", error="refund_amount_exceeds")
        made = Refund(
            id=self.next_number(),
            payment_id=payment.id,
            amount_centavos=left if amount is None else amount,
            created_at=now,
        )
        payment.refunds.append(made)
        is_all = payment.refunded_centavos == payment.amount_centavos
        payment.turn(*(("refunded", None) if is_all else ("approved", "partially_refunded")), now)
        return made


def instant(at: datetime) -> str:
    """As MercadoPago writes instants."""
    return at.isoformat(timespec="milliseconds")
