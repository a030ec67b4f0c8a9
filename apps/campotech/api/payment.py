"""How customers pay: a link of MercadoPago, or the account to transfer to while it is out."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, Request

from apps.campotech.api.caller import Caller, system_of
from apps.campotech.api.problem import Problem
from apps.campotech.payments.link import ManualPayment, NotPayable
from apps.providers.mercadopago import Permanent

router: Final = APIRouter(prefix="/api/v1")


@router.post("/invoices/{invoice}/payment-link")
async def make_payment_link(request: Request, caller: Caller, invoice: UUID) -> dict[str, Any]:
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
            return {"url": None, "fallback": True, "manualPaymentInstructions": _words(found)}
        case url:
            return {"url": url, "fallback": False}


def _words(manual: ManualPayment) -> dict[str, str]:
    pesos, cents = divmod(manual.amount_cents, 100)
    return {
        "alias": manual.alias,
        "cbu": manual.cbu,
        "amount": f"{pesos}.{cents:02}",
        "reference": manual.reference,
    }
