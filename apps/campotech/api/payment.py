"""How customers pay: a link of MercadoPago, or the account to transfer to while it is out."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fastapi import APIRouter, Request

from apps.campotech.api.answer import Answer
from apps.campotech.api.caller import Caller, system_of
from apps.campotech.api.problem import Problem, answers
from apps.campotech.payments.link import ManualPayment, NotPayable
from apps.providers.mercadopago import Permanent

router: Final = APIRouter(prefix="/api/v1", tags=["payments"], responses=answers(401, 422, 503))


class ManualPaymentInstructions(Answer):
    """Where to transfer what is due."""

    alias: str
    cbu: str
    amount: str
    reference: str


class PaymentLink(Answer):
    """How the customer pays."""

    url: str | None
    fallback: bool
    """MercadoPago is out: the customer transfers the amount."""
    manual_payment_instructions: ManualPaymentInstructions | None = None


@router.post(
    "/invoices/{invoice}/payment-link",
    responses=answers(404, 409, 502),
    response_model_exclude_unset=True,
)
async def make_payment_link(request: Request, caller: Caller, invoice: UUID) -> PaymentLink:
    """Where the customer pays an invoice; the same link as long as the same amount is due."""
    try:
        found = await system_of(request).links.link(caller.id, invoice)
    except NotPayable as error:
        raise Problem(409, str(error)) from None
    except Permanent:
        raise Problem(502, "MercadoPago refused to make a link") from None
    match found:
        case None:
            raise Problem(404, "no such invoice")
        case ManualPayment():
            said = _words(found)
            return PaymentLink(url=None, fallback=True, manual_payment_instructions=said)
        case url:
            return PaymentLink(url=url, fallback=False)


def _words(manual: ManualPayment) -> ManualPaymentInstructions:
    pesos, cents = divmod(manual.amount_cents, 100)
    return ManualPaymentInstructions(
        alias=manual.alias,
        cbu=manual.cbu,
        amount=f"{pesos}.{cents:02}",
        reference=manual.reference,
    )
