"""MercadoPago on loopback."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from apps.sandbox.bearer import Ask, BearerService
from apps.sandbox.mercadopago import search, shown
from apps.sandbox.mercadopago.account import Account, Chargeback, Payment, Refund
from apps.sandbox.mercadopago.notification import Delivery, Draft, Forgery
from apps.sandbox.mercadopago.preference_check import centavos_of, check_preference
from apps.sandbox.mercadopago.refusal import Refused, error_response
from apps.sandbox.stand_in import Reply
from apps.sandbox.webhook import Notifier

_ANSWER_WITHIN_S: Final = 22
_UNDER_WAY: Final = {409: "refund_in_progress", 423: "resource_locked"}


class MercadoPago(BearerService):
    """One seller's account; customers and banks act through its methods."""

    name: ClassVar[str] = "mercadopago"

    def __init__(
        self,
        *,
        access_token: str | None = None,
        webhook_secret: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.access_token = access_token or f"APP_USR-{secrets.token_urlsafe(24)}"
        self.webhook_secret = webhook_secret or secrets.token_hex(32)
        self.unauthorized = partial(Refused, 401, "invalid access token")
        self.account = Account(now)
        self.held_keys: dict[str, int] = {}
        """Idempotency keys whose first request has not ended yet: answered with 409 or 423."""
        super().__init__()
        self.webhooks = Notifier(self.ledger, within_s=_ANSWER_WITHIN_S, taken=(200, 201))

    def routes(self) -> Sequence[BaseRoute]:
        """The addresses of the API."""
        payments, preferences = "/v1/payments", "/checkout/preferences"
        return [
            self.route("POST", preferences, self._create_preference),
            self.route("GET", f"{preferences}/search", self._search_preferences),
            self.route("GET", f"{preferences}/{{id}}", self._get_preference),
            self.route("GET", f"{payments}/search", self._search_payments),
            self.route("GET", f"{payments}/{{id}}", self._get_payment),
            self.route("POST", f"{payments}/{{id}}/refunds", self._refund),
            self.route("GET", f"{payments}/{{id}}/refunds", self._list_refunds),
            self.route("GET", "/v1/chargebacks/{id}", self._get_chargeback),
        ]

    def failure(self, status: int) -> Response:
        """Trouble in MercadoPago's own format."""
        return error_response(status, "the service is in trouble")

    def pay(
        self, preference_id: str, status: str = "approved", detail: str | None = None
    ) -> Payment:
        """A customer pays at the link of a preference."""
        return self.account.pay(preference_id, status, detail)

    def settle(self, payment_id: int, status: str, detail: str | None = None) -> Payment:
        """A payment comes to another status."""
        return self.account.settle(payment_id, status, detail)

    def charge_back(self, payment_id: int) -> Chargeback:
        """The payer's bank takes a payment back."""
        return self.account.charge_back(payment_id)

    def refund(self, payment: Payment, amount: int | None, key: str) -> Refund:
        """Money goes back: `amount` centavos, or all that is left; once for each key."""
        fingerprint = hashlib.sha256(f"{payment.id} {amount}".encode()).hexdigest()
        return self.account.refund(payment, amount, key, fingerprint)

    async def notify(
        self,
        url: str,
        data_id: int | str,
        *,
        forgery: Forgery | None = None,
        notification_id: int | None = None,
        **more: Any,
    ) -> Delivery:
        """Tell `url` of a payment; `more` are `topic`, `action`, `unit`, `is_id_lowered`."""
        draft = Draft(
            url=url,
            data_id=str(data_id),
            notification_id=notification_id or self.account.next_number(),
            user_id=self.account.collector_id,
            at=self.account.now(),
            secret=self.webhook_secret,
            forgery=forgery,
            **more,
        )
        return await self.webhooks.send(draft.signed(), forgery=forgery)

    async def replay(self, delivery: Delivery) -> Delivery:
        """Send the very same request once more."""
        return await self.webhooks.send(delivery, is_replay=True)

    def _create_preference(self, ask: Ask) -> Reply:
        kept = dict(self.account.prefer(check_preference(_json(ask))))
        if ask.is_wrong:
            del kept["init_point"]
        return _shown(kept, 201, kept.get("external_reference", ""))

    def _get_preference(self, ask: Ask) -> Reply:
        found = self.account.preferences.get(ask.id)
        if found is None:
            raise Refused(404, "preference not found")
        return _shown(found)

    def _search_preferences(self, ask: Ask) -> Reply:
        found = search.preferences(self.account.preferences.values(), ask.request.query_params)
        return _shown(found)

    def _get_payment(self, ask: Ask) -> Reply:
        found = shown.payment_json(self._payment(ask))
        return _shown({**found, "id": found["id"] + 1} if ask.is_wrong else found)

    def _search_payments(self, ask: Ask) -> Reply:
        return _shown(search.payments(self.account.payments.values(), ask.request.query_params))

    def _refund(self, ask: Ask) -> Reply:
        key = ask.request.headers.get("x-idempotency-key", "")
        if not key:
            raise Refused(400, "Header X-Idempotency-Key can't be null", code=4292)
        if status := self.held_keys.get(key):
            raise Refused(status, "not completed yet", error=_UNDER_WAY[status])
        payment, amount = self._payment(ask), _amount_of(ask)
        before = len(payment.refunds)
        refund = self.refund(payment, amount, key)
        answer = shown.refund_json(refund, self.account.collector_id)
        if ask.is_wrong:
            answer["payment_id"] += 1
        is_new = len(payment.refunds) > before
        detail = {"refund": refund.id, "centavos": refund.amount_centavos, "is_new": is_new}
        return _shown(answer, 201, str(payment.id), **detail)

    def _list_refunds(self, ask: Ask) -> Reply:
        payment, seller = self._payment(ask), self.account.collector_id
        return _shown([shown.refund_json(one, seller) for one in payment.refunds])

    def _get_chargeback(self, ask: Ask) -> Reply:
        found = self.account.chargebacks.get(ask.id)
        if found is None:
            raise Refused(404, "chargeback not found")
        return _shown(shown.chargeback_json(found))

    def _payment(self, ask: Ask) -> Payment:
        id_ = ask.id
        found = self.account.payments.get(int(id_)) if id_.isdecimal() else None
        if found is None:
            raise Refused(404, "Payment not found", code=2000)
        return found


def _json(ask: Ask) -> Any:
    """What was sent, with amounts as they were written."""
    if not ask.is_json:
        raise Refused(400, "content-type must be application/json")
    try:
        return json.loads(ask.body, parse_float=Decimal)
    except ValueError:
        raise Refused(400, "invalid json") from None


def _amount_of(ask: Ask) -> int | None:
    """How much is to go back; None for all of it."""
    wanted = _json(ask) if ask.body else {}
    if not isinstance(wanted, dict) or wanted.keys() - {"amount"}:
        raise Refused(400, "the body must be empty or hold an amount")
    return centavos_of(wanted["amount"]) if wanted else None


def _shown(value: Any, status: int = 200, subject: str = "", **detail: Any) -> Reply:
    content = json.loads(json.dumps(value, default=float))
    return Reply(response=JSONResponse(content, status), subject=subject, detail=detail)
