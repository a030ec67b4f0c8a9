"""The way in while a program is developed: a link that lets its reader in as an owner, once."""

from __future__ import annotations

from faena.web.access.caller import Caller
from faena.web.access.role import Role
from faena.web.site import Site

_NAME = "developer"


async def link_for(site: Site, address: str) -> str:
    """The link, for a dashboard at this address."""
    caller = Caller(name=_NAME, role=Role.OWNER, sees_payloads=True, via="link")
    return f"{address}/link/{await site.gate.sessions.make_link(caller)}"
