"""Who has access: people and programs, what they may do, and how they come in."""

from __future__ import annotations

import time
from typing import Final

from starlette.responses import Response

from faena.web.access.account import AccountView
from faena.web.access.role import Permission, Role
from faena.web.route import Visit

_SOON_US: Final = 7 * 86_400_000_000


async def access(visit: Visit) -> Response:
    """All users and tokens, those that want something done first."""
    now = time.time_ns() // 1000
    found = await visit.site.gate.accounts.list()
    users = [one for one in found if one.kind == "user"]
    tokens = [one for one in found if one.kind == "token"]
    owners = [one for one in users if one.role == Role.OWNER.value and _can_come(one)]
    return visit.site.templates.page(
        visit,
        "access.html",
        users=sorted(users, key=lambda one: (not one.is_invited, one.name)),
        tokens=sorted(tokens, key=lambda one: (one.expires_at or now * 2, one.name)),
        owners=len(owners),
        invited=sum(one.is_invited for one in users),
        over=sum(0 < one.expires_at <= now for one in tokens),
        ending=sum(now < one.expires_at <= now + _SOON_US for one in tokens),
        roles=list(Role),
        permissions=list(Permission),
        doors=visit.site.gate.access,
        now=now,
        done=visit.request.query_params.get("done"),
    )


def _can_come(one: AccountView) -> bool:
    return not (one.is_off or one.is_invited)
