"""What is told to a device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from apps.providers.push.errors import Permanent

MOST_BYTES: Final = 4096
"""Of a message, with its data."""
_RESERVED: Final = ("google", "gcm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification for one device."""

    token: str = field(repr=False)
    """Of the app on the device."""
    title: str = field(repr=False)
    body: str = field(repr=False)
    data: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """For the app; all values are texts."""
    collapse_key: str | None = None
    """Of notices with the same key, a device shows the last one only. Give one: a notice that is
    sent again then replaces the first."""
    is_urgent: bool = False
    """Whether a sleeping device is woken."""
    ttl_s: int = 86_400
    """For how long it is kept for a device that is not reached."""

    def message(self) -> dict[str, Any]:
        """As Firebase wants it, checked as far as it can be here."""
        self._check_data()
        android: dict[str, Any] = {
            "priority": "high" if self.is_urgent else "normal",
            "ttl": f"{self.ttl_s}s",
        }
        headers = {"apns-priority": "10" if self.is_urgent else "5"}
        if self.collapse_key is not None:
            android |= {
                "collapse_key": self.collapse_key,
                "notification": {"tag": self.collapse_key},
            }
            headers["apns-collapse-id"] = self.collapse_key
        return {
            "token": self.token,
            "notification": {"title": self.title, "body": self.body},
            "data": dict(self.data),
            "android": android,
            "apns": {"headers": headers},
        }

    def _check_data(self) -> None:
        if not self.token or self.ttl_s < 0:
            raise Permanent("a notice must have a token, and a ttl_s of 0 or more")
        for name, value in self.data.items():
            is_own = not name.startswith(_RESERVED) and name not in {"from", "message_type"}
            if not isinstance(value, str) or not is_own:  # pyright: ignore[reportUnnecessaryIsInstance] - data come out of payloads
                raise Permanent("data must have texts as values, and no reserved names")
        if self.collapse_key is not None and len(self.collapse_key.encode()) > 64:
            raise Permanent("a collapse_key must have at most 64 bytes")
        told = [self.title, self.body, *self.data, *self.data.values()]
        if len(json.dumps(told, ensure_ascii=False).encode()) > MOST_BYTES:
            raise Permanent(f"a notice must have at most {MOST_BYTES} bytes")
