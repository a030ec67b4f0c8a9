"""The dashboard of CampoTech's queues, beside its API: for operators with an account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from faena.web import Access, Dashboard, dashboard

if TYPE_CHECKING:
    from apps.campotech.system import System

PATH: Final = "/admin/queues"


def for_operators(system: System) -> Dashboard:
    """Who it is for: those with an account, and in a demo those with its link."""
    return dashboard(system.app, access=Access(link=system.settings.has_link))
