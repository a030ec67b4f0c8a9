"""Cursors for those who see one tenant only.

A cursor names the job behind which a list goes on, and where jobs of a tenant are picked out of
all, that may be another tenant's. Such a reader is given a random word for it instead. The last ten
thousand words are kept in this process: another one, or one that was restarted, asks to begin
again.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Final

from faena.web.answer import Refusal
from faena.web.route import Visit

_MOST: Final = 10_000
_BYTES: Final = 16


class Veil:
    """The words of a process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def shown(self, visit: Visit, cursor: str | None) -> str | None:
        """A cursor as this reader may see it."""
        whose = visit.caller.tenant
        if cursor is None or whose is None:
            return cursor
        word = secrets.token_urlsafe(_BYTES)
        self._kept[word] = whose, cursor
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return word

    def meant(self, visit: Visit) -> str | None:
        """The cursor that an address means."""
        given, whose = visit.request.query_params.get("cursor") or None, visit.caller.tenant
        if given is None or whose is None:
            return given
        kept = self._kept.get(given)
        if kept is None or kept[0] != whose:
            raise Refusal(422, "invalid", "this place in the list is forgotten: begin at its start")
        return kept[1]
