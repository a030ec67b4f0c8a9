"""Who is registered: businesses, their points of sale, delegations, and remarks about receivers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

_WEIGHTS: Final = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)


@dataclass(slots=True, kw_only=True)
class Business:
    """One that may issue vouchers."""

    cuit: int
    points_of_sale: set[int] = field(default_factory=set[int])
    services: set[str] = field(default_factory=set[str])
    """Which services its certificates may ask tickets for."""
    represents: set[int] = field(default_factory=set[int])
    """Whose vouchers it may issue besides its own."""
    is_active: bool = True


class Registry:
    """All of them."""

    def __init__(self) -> None:
        self.businesses: dict[int, Business] = {}
        self.remarks: dict[int, tuple[int, ...]] = {}
        """What AFIP has to say about receivers, by document number: codes such as 10017."""

    def register(self, cuit: int, points_of_sale: Iterable[int] = ()) -> Business:
        """A business, new or known, with these points of sale besides those that it has."""
        if not has_check_digit(cuit):
            raise ValueError(f"cuit must end with its check digit, got {cuit}")
        business = self.businesses.setdefault(cuit, Business(cuit=cuit))
        business.points_of_sale.update(points_of_sale)
        return business

    def delegate(self, cuit: int, to: int) -> None:
        """Let another business issue vouchers of this one; tickets that it has do not know it."""
        self.register(cuit)
        self.register(to).represents.add(cuit)


def has_check_digit(number: int) -> bool:
    """Whether this can be a CUIT, a CUIL or a CDI."""
    text = f"{number:011d}"
    if len(text) != 11:
        return False
    total = sum(int(digit) * weight for digit, weight in zip(text[:10], _WEIGHTS, strict=True))
    return number > 0 and -total % 11 == int(text[10])
