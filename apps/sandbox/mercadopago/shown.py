"""What MercadoPago answers: its objects as JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from apps.sandbox.mercadopago.account import Chargeback, Payment, Refund, instant


def number(centavos: int) -> float:
    """An amount as JSON shows it."""
    return centavos / 100


def payment_json(payment: Payment) -> dict[str, Any]:
    """A payment."""
    amount, is_approved = number(payment.amount_centavos), payment.approved_at is not None
    return {
        "id": payment.id,
        "date_created": instant(payment.created_at),
        "date_approved": instant(payment.approved_at) if payment.approved_at else None,
        "date_last_updated": instant(payment.updated_at),
        "operation_type": "regular_payment",
        "payment_method_id": "visa",
        "payment_type_id": "credit_card",
        "status": payment.status,
        "status_detail": payment.status_detail,
        "currency_id": payment.preference["items"][0].get("currency_id", "ARS"),
        "transaction_amount": amount,
        "transaction_amount_refunded": number(payment.refunded_centavos),
        "captured": payment.status != "authorized",
        "external_reference": payment.preference.get("external_reference"),
        "payer": {"email": payment.preference.get("payer", {}).get("email")},
        "metadata": payment.preference.get("metadata", {}),
        "transaction_details": {
            "net_received_amount": number(_net(payment)) if is_approved else 0,
            "total_paid_amount": amount,
            "overpaid_amount": 0,
            "installment_amount": amount,
        },
    }


def refund_json(refund: Refund, collector_id: int) -> dict[str, Any]:
    """A refund."""
    return {
        "id": refund.id,
        "payment_id": refund.payment_id,
        "amount": number(refund.amount_centavos),
        "source": {"id": str(collector_id), "name": "CampoTech", "type": "collector"},
        "date_created": instant(refund.created_at),
        "refund_mode": "standard",
        "status": "approved",
        "unique_sequence_number": None,
    }


def chargeback_json(chargeback: Chargeback) -> dict[str, Any]:
    """A chargeback, with the spelling of its reference."""
    return {
        "id": chargeback.id,
        "payments": [chargeback.payment_id],
        "currency": "ARS",
        "amount": number(chargeback.amount_centavos),
        "coverage_applied": False,
        "coverage_elegible": True,
        "documentation_required": True,
        "documentation_status": "pending",
        "documentation": [],
        "date_documentation_deadline": instant(chargeback.created_at + timedelta(days=10)),
        "date_created": instant(chargeback.created_at),
        "date_last_updated": instant(chargeback.created_at),
        "live_mode": True,
    }


def _net(payment: Payment) -> int:
    """After a fee of 6.4 %."""
    return payment.amount_centavos * 936 // 1000
