"""The fields of a log record: of the running job, and what the caller gave as `extra`."""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec

from faena.telemetry.logging.bound import FIELDS, bound_fields
from faena.telemetry.logging.text import LONGEST_FIELD, bounded

_OWN: Final = frozenset(
    {*vars(logging.LogRecord("", 0, "", 0, "", (), None)), "message", "asctime", "taskName"}
)
_WIDEST: Final = 1 << 63

_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


class JobFilter(logging.Filter):
    """Adds the fields of the running job to every record that passes; None where there is none.

    For formatters that do not know Faena, and for handlers that format in another thread.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        found = bound_fields()
        for name in FIELDS:
            if name not in record.__dict__:
                setattr(record, name, found.get(name))
        return True


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """All fields of a record as JSON has them; those that its caller gave take precedence."""
    found = bound_fields()
    for name, value in record.__dict__.items():
        if name not in _OWN and value is not None:
            found[name] = value
    return {bounded(name, 100): plain(value) for name, value in found.items()}


def plain(value: Any) -> Any:
    """A value that JSON has, of a bounded size; others as text."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return int(value) if -_WIDEST <= value < _WIDEST else bounded(str(value), LONGEST_FIELD)
    if isinstance(value, str):
        return bounded(str.__str__(value), LONGEST_FIELD)
    return _encoded(value)


def _encoded(value: Any) -> Any:
    """Containers as they are if they are small; anything else as text."""
    try:
        written = _encode(value)
    except Exception:  # noqa: BLE001 - a user's object may do anything
        return f"<{type(value).__name__} that cannot be written>"
    if len(written) <= LONGEST_FIELD:
        return msgspec.Raw(written)
    return bounded(written.decode(), LONGEST_FIELD)
