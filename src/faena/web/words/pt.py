"""Portuguese."""

from __future__ import annotations

from typing import Final

PT: Final[dict[str, str]] = {}
