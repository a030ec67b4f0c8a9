"""The audit trail."""

from __future__ import annotations

import re
from typing import Final

from starlette.responses import Response

from faena.web.answer import Refusal
from faena.web.route import Visit

_CURSOR: Final = re.compile(r"\d{1,20}-\d{1,20}")


async def audit(visit: Visit) -> Response:
    """Who has changed what, the newest first."""
    before = visit.request.query_params.get("before")
    if before is not None and not _CURSOR.fullmatch(before):
        raise Refusal(422, "invalid", "this is no cursor of the audit trail: begin at its start")
    page = await visit.site.trail.page(before or "+")
    return visit.site.templates.page(visit, "audit.html", page=page)
