"""Members of MercadoPago's objects: amounts in centavos, ids as numbers or texts, instants."""

from __future__ import annotations

from datetime import datetime

from apps.providers import reading
from apps.providers.mercadopago import amount
from apps.providers.reading import Unreadable


class Fields(reading.Fields):
    """The members of one object."""

    def text_or_empty(self, name: str) -> str:
        """A text, or nothing; a number counts, since ids come as either."""
        value = self._members.get(name)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return str(value) if is_number else super().text_or_empty(name)

    def centavos(self, name: str) -> int:
        """An amount that is there."""
        if (found := self.centavos_or_none(name)) is None:
            raise Unreadable(f"{name} is missing")
        return found

    def centavos_or_none(self, name: str) -> int | None:
        """An amount, or nothing."""
        value = self._members.get(name)
        if value is None:
            return None
        try:
            return amount.from_json(value)
        except ValueError:
            raise Unreadable(f"{name} is not an amount") from None

    def truth(self, name: str) -> bool:
        """A boolean; the reference shows them as texts, too. Nothing counts as false."""
        value = self._members.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        if value not in {"true", "false"}:
            raise Unreadable(f"{name} is not a boolean")
        return value == "true"

    def instant(self, name: str) -> datetime | None:
        """An instant with its offset, or nothing."""
        value = self._members.get(name)
        if value is None:
            return None
        try:
            instant = datetime.fromisoformat(str(value))
        except ValueError:
            raise Unreadable(f"{name} is not an instant") from None
        if instant.tzinfo is None:
            raise Unreadable(f"{name} has no offset")
        return instant
