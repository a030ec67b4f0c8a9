"""A stand-in of MercadoPago: `MercadoPago`, and what it sends and keeps."""

from apps.sandbox.mercadopago.account import Chargeback, Payment, Refund
from apps.sandbox.mercadopago.notification import Delivery, Forgery
from apps.sandbox.mercadopago.stand_in import MercadoPago
from apps.sandbox.mercadopago.status import STATUSES

__all__ = ["STATUSES", "Chargeback", "Delivery", "Forgery", "MercadoPago", "Payment", "Refund"]
