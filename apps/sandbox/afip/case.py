"""What a rule looks at: one voucher, who issues it, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from apps.sandbox.afip.classes import Class
from apps.sandbox.afip.detail import AssociatedLine, Detail
from apps.sandbox.afip.terms import Terms

_CENT: Final = Decimal("0.01")
_RELATIVE: Final = Decimal("0.0001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A voucher before the rules."""

    issuer: int
    kind: int
    letter: Class
    detail: Detail
    today: date
    terms: Terms
    receiver_remarks: tuple[int, ...]
    find: Callable[[AssociatedLine], Detail | None]
    """Finds a voucher of the issuer's."""

    @property
    def date(self) -> date | None:
        """That of the voucher: today where none was sent, None where it is no day."""
        text = self.detail.date
        return self.today if text is None else read_day(text)

    @property
    def is_c(self) -> bool:
        """Whether rules about VAT do not apply."""
        return self.letter == "C"


def read_day(text: str) -> date | None:
    """`20261117`; None if it is no day."""
    if not (len(text) == 8 and text.isascii() and text.isdigit()):
        return None
    try:
        return date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return None


def is_close(found: Decimal, wanted: Decimal, times: int = 1) -> bool:
    """Within a cent for each line, or within a ten-thousandth."""
    difference = abs(found - wanted)
    return difference <= _CENT * max(times, 1) or difference <= abs(wanted) * _RELATIVE
