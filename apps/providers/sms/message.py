"""A message as Twilio has it, and how many segments a text needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

FAILED: Final = frozenset({"failed", "undelivered", "canceled"})

_GSM: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""The alphabet of GSM: Spanish á, í, ó and ú are not in it."""
_ESCAPED: Final = frozenset("\f^{}\\[~]|€")
"""Characters that need two places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What has become of a message."""

    sid: str
    status: str
    """Such as queued, sent, delivered, undelivered, failed."""
    to: str = field(repr=False)
    body: str = field(repr=False)
    segments: int
    error_code: int | None
    created_at: datetime

    @property
    def items(self) -> Mapping[str, int]:
        """What it has used, for the price list: `upstream.spend(message.items)`."""
        return {"segment": self.segments}

    @property
    def has_failed(self) -> bool:
        """Whether it will not arrive any more."""
        return self.status in FAILED


def segments(text: str) -> int:
    """In how many parts a text is sent, which is what it costs.

    160 characters of GSM's alphabet fit into one, or 70 if any other is in it; less if there are
    several parts, because each says which it is. No character is cut in two.
    """
    if _GSM.issuperset(set(text) - _ESCAPED):
        sizes, alone, among = [2 if one in _ESCAPED else 1 for one in text], 160, 153
    else:
        sizes, alone, among = [len(one.encode("utf-16-le")) // 2 for one in text], 70, 67
    if sum(sizes) <= alone:
        return 1
    parts, left = 1, among
    for size in sizes:
        if size > left:
            parts, left = parts + 1, among
        left -= size
    return parts
