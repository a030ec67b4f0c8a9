"""Taking a change back by doing again what was in force before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from faena.web.operation.operation import Undo

_SECOND_US: Final = 1_000_000


def again(
    before: Mapping[str, Any], where: Mapping[str, str], operation: str, **fields: object
) -> Undo | None:
    """Do it again for the time that it had left: `until` and `at` are the server's microseconds."""
    until, at = before.get("until"), before.get("at")
    if until is not None:
        if at is None or until - at < _SECOND_US:
            return None
        fields["lasting"] = f"{(until - at) // _SECOND_US}s"
    return Undo(operation, {**where, **fields})
