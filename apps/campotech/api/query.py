"""Parameters of queries that several routes have."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from apps.campotech.messages.fields import Instant

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LATEST: Final = "9998-12-31"


def _midnight(value: object) -> object:
    if isinstance(value, str) and _DAY.fullmatch(value) and value <= _LATEST:
        return f"{value}T00:00:00Z"
    return value


Since = Annotated[
    Instant,
    BeforeValidator(_midnight),
    Field(description="An instant with its offset, or a day in UTC"),
]
