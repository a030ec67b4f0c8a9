"""Why a notice has not arrived; messages never have addresses or secrets."""

from __future__ import annotations

from faena.errors import FaenaError


class Undelivered(FaenaError):
    """It may be accepted later."""


class Refused(Undelivered):
    """It will never be accepted as it is."""
