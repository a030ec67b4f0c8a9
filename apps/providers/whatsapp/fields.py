"""Members of WhatsApp's objects: numbers and instants that come as texts."""

from __future__ import annotations

from datetime import UTC, datetime

from apps.providers import reading
from apps.providers.reading import Unreadable


class Fields(reading.Fields):
    """The members of one object."""

    def whole(self, name: str) -> int:
        """A whole number from 0; some come as texts."""
        value = self._members.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            return int(value)
        return super().whole(name)

    def is_true(self, name: str) -> bool:
        """Whether it is there and true."""
        return self._members.get(name) is True

    def instant(self, name: str) -> datetime:
        """An instant in seconds since 1970."""
        try:
            return datetime.fromtimestamp(self.whole(name), UTC)
        except (ValueError, OverflowError, OSError):
            raise Unreadable(f"{name} is not an instant") from None
