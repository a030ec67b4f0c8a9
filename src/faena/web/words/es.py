"""Spanish."""

from __future__ import annotations

from typing import Final

ES: Final[dict[str, str]] = {}
