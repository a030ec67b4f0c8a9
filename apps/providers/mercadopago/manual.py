"""How to pay when MercadoPago takes no calls: by bank transfer, with a reference to match it by."""

from __future__ import annotations

from dataclasses import dataclass

from apps.providers.mercadopago.amount import check_centavos, to_text
from apps.providers.mercadopago.errors import Invalid
from apps.providers.mercadopago.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualPayment:
    """What a customer needs for a transfer."""

    alias: str
    cbu: str
    amount_centavos: int
    reference: str

    @property
    def text(self) -> str:
        """For the customer."""
        account = [f"alias {self.alias}" if self.alias else "", f"CBU {self.cbu}" * bool(self.cbu)]
        return (
            f"Transferí ${to_text(self.amount_centavos)} a {' / '.join(filter(None, account))} "
            f"con la referencia {self.reference}."
        )


def manual_payment(settings: Settings, amount: int, reference: str) -> ManualPayment:
    """The instructions to pay `amount` centavos without MercadoPago."""
    if not settings.alias and not settings.cbu:
        raise ValueError("alias or cbu must be set for manual payments, got neither")
    if not reference:
        raise Invalid("reference must be given, got none")
    return ManualPayment(
        alias=settings.alias,
        cbu=settings.cbu,
        amount_centavos=check_centavos("amount", amount),
        reference=reference,
    )
