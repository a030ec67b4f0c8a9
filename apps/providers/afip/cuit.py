"""CUIT: the tax number of persons and companies in Argentina, eleven digits with a check digit."""

from __future__ import annotations

import re
from typing import Final

from apps.providers.afip.errors import Invalid

_WEIGHTS: Final = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
_PREFIXES: Final = frozenset(
    {"20", "23", "24", "25", "26", "27"}  # persons
    | {"30", "33", "34"}  # companies
    | {"50", "51", "55"}  # countries, for customers abroad
)
_WRITTEN: Final = re.compile(r"([0-9]{2})-?([0-9]{8})-?([0-9])")


def parse_cuit(text: str) -> str:
    """The eleven digits of `20-12345678-6` or `20123456786`; `Invalid` if it is no CUIT."""
    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        raise Invalid("cuit must be eleven digits such as 20-12345678-6")
    prefix, middle, last = written.groups()
    if prefix not in _PREFIXES:
        raise Invalid(f"cuit must begin with a known prefix, got {prefix}")
    if check_digit(prefix + middle) != int(last):
        raise Invalid("cuit must end with its check digit")
    return prefix + middle + last


def is_cuit(text: str) -> bool:
    """Whether it is one, with or without hyphens."""
    try:
        parse_cuit(text)
    except Invalid:
        return False
    return True


def format_cuit(cuit: str) -> str:
    """As people write it: `20-12345678-6`."""
    digits = parse_cuit(cuit)
    return f"{digits[:2]}-{digits[2:10]}-{digits[10]}"


def check_digit(first_ten: str) -> int | None:
    """The last digit that belongs to the first ten, modulo 11.

    None where there is none: such a number is given out with another prefix instead (23, 24, 33).
    """
    total = sum(int(digit) * weight for digit, weight in zip(first_ten, _WEIGHTS, strict=True))
    digit = -total % 11
    return None if digit == 10 else digit
