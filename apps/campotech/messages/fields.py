"""Types of fields: ids, instants, days, amounts, addresses.

They are strict where pydantic is kind: a number is no instant, a text is no number, `true` is no 1.
A message that two programs read differently is worse than one that is refused.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Final, cast
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    StrictInt,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

MOST_PESOS: Final = Decimal("9999999999999.99")
"""Thirteen digits and two, as the tax office has them. A float is exact to fifteen digits, so that
the number a JavaScript program wrote is the amount it meant."""

DEEPEST: Final = 64
"""How deep data may be; what is deeper than a few levels is an attack."""

_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_INSTANT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_AMOUNT: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CENTAVO: Final = Decimal("0.01")


def _id(value: object) -> object:
    if isinstance(value, UUID) or (isinstance(value, str) and _UUID.fullmatch(value)):
        return value
    raise PydanticCustomError("id", "must be a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e")


def _instant(value: object) -> object:
    if isinstance(value, datetime) or (isinstance(value, str) and _INSTANT.match(value)):
        return value
    raise PydanticCustomError(
        "instant", "must be an instant with its offset, such as 2025-12-01T10:00:00Z"
    )


def _in_utc(value: datetime) -> datetime:
    try:
        moved = value.astimezone(UTC)
    except OverflowError:  # an offset leads beyond the first or the last year
        moved = datetime.min.replace(tzinfo=UTC)
    if moved < _EPOCH:
        raise PydanticCustomError("instant", "must be an instant from 1970 to 9999")
    return moved


def _day(value: object) -> object:
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    if is_day or (isinstance(value, str) and _DAY.fullmatch(value)):
        return value
    raise PydanticCustomError("day", "must be a day, such as 2025-12-01")


def _pesos(value: object) -> Decimal:
    """Always with two decimals: the same amount has the same bytes."""
    amount = _exact(value)
    if amount is None:
        raise PydanticCustomError("pesos", "must be an amount in pesos, such as 1500.50")
    if not 0 < amount <= MOST_PESOS:
        raise PydanticCustomError(
            "pesos", "must be more than 0 and at most {most}", {"most": str(MOST_PESOS)}
        )
    rounded = amount.quantize(_CENTAVO)
    if rounded != amount:
        raise PydanticCustomError("pesos", "must have at most two decimals")
    return rounded


def _exact(value: object) -> Decimal | None:
    """What a float means is its shortest spelling."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        amount = Decimal(float.__repr__(value) if isinstance(value, float) else value)
        return amount if amount.is_finite() else None
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        return Decimal(value)
    return None


def _storable(value: str) -> str:
    """What PostgreSQL would refuse is refused here: no job can do anything with it."""
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise PydanticCustomError("text", "must have no NUL and no half of a surrogate pair")
    return value


def _web_address(value: str) -> str:
    """The address as it was written: to normalise it would break its signature."""
    if any(letter <= " " or letter == "\x7f" for letter in value) or not _has_host(value):
        raise PydanticCustomError("web_address", "must be an http or https URL")
    return value


def _has_host(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is no number
        return False


def _json(value: dict[str, Any]) -> dict[str, Any]:
    if not _is_json(value, DEEPEST):
        raise PydanticCustomError(
            "json",
            "must be what JSON carries: texts, finite numbers, at most {deepest} levels deep",
            {"deepest": DEEPEST},
        )
    return value


def _is_json(value: object, depth: int) -> bool:
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    if isinstance(value, list):
        parts = cast("list[object]", value)
        return depth > 0 and all(_is_json(part, depth - 1) for part in parts)
    if isinstance(value, dict):
        named = cast("dict[object, object]", value)
        is_named = all(isinstance(key, str) and _is_json(key, 0) for key in named)
        return depth > 0 and is_named and all(_is_json(part, depth - 1) for part in named.values())
    is_finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value is None or is_finite


Id = Annotated[UUID, BeforeValidator(_id)]

Text = Annotated[str, StringConstraints(strict=True), AfterValidator(_storable)]
"""Text that goes into the database as it is."""

Name = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=256), AfterValidator(_storable)
]
"""An id or a name that others gave: any text, but not none."""

Words = Annotated[str, StringConstraints(strict=True)]
"""Any text."""

IdempotencyText = Annotated[str, StringConstraints(strict=True, min_length=16, max_length=64)]

Phone = Annotated[str, StringConstraints(strict=True, pattern=r"^\+54[0-9]{10,11}$")]
"""A number in Argentina."""

Instant = Annotated[AwareDatetime, BeforeValidator(_instant), AfterValidator(_in_utc)]
"""In UTC; from text or a datetime with an offset."""

Day = Annotated[date, BeforeValidator(_day)]

Pesos = Annotated[Decimal, BeforeValidator(_pesos)]
"""A positive amount: 1500, 1500.5 and "1500.50" are accepted, 0.1 + 0.2 is not."""

Url = Annotated[
    str,
    StringConstraints(strict=True, max_length=2048),
    AfterValidator(_web_address),
    Field(json_schema_extra={"format": "uri"}),
]

Clock = dict[Text, Annotated[StrictInt, Field(ge=0)]]
"""A vector clock: how many changes of each device were seen."""

Data = Annotated[dict[str, Any], AfterValidator(_json)]
"""Anything that JSON carries."""
