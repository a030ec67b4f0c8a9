"""MercadoPago: links to pay at, payments, refunds, chargebacks, and its notifications."""

from apps.providers.mercadopago.client import Client
from apps.providers.mercadopago.errors import (
    Conflict,
    Invalid,
    MercadoPagoError,
    NotFound,
    Permanent,
    RateLimited,
    Retryable,
    Unauthorized,
    UnknownOutcome,
    WebhookRefused,
)
from apps.providers.mercadopago.manual import ManualPayment, manual_payment
from apps.providers.mercadopago.payment import (
    Chargeback,
    Payment,
    PaymentPage,
    PaymentSearch,
    Refund,
)
from apps.providers.mercadopago.preference import Checkout, Item, Preference
from apps.providers.mercadopago.settings import Settings
from apps.providers.mercadopago.upstream import mercadopago_upstream
from apps.providers.mercadopago.webhook import Notification, read_notification

__all__ = [
    "Chargeback",
    "Checkout",
    "Client",
    "Conflict",
    "Invalid",
    "Item",
    "ManualPayment",
    "MercadoPagoError",
    "NotFound",
    "Notification",
    "Payment",
    "PaymentPage",
    "PaymentSearch",
    "Permanent",
    "Preference",
    "RateLimited",
    "Refund",
    "Retryable",
    "Settings",
    "Unauthorized",
    "UnknownOutcome",
    "WebhookRefused",
    "manual_payment",
    "mercadopago_upstream",
    "read_notification",
]
