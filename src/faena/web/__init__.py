"""The dashboard and the admin API: one ASGI application beside a program's app.

from faena.web import Access, dashboard

web.mount("/admin/queues", dashboard(app, access=Access()))
"""

from __future__ import annotations

from faena.web.access.access import Access, TrustedProxy
from faena.web.access.oidc import Oidc
from faena.web.application import Dashboard, dashboard
from faena.web.mount import beside

__all__ = ["Access", "Dashboard", "Oidc", "TrustedProxy", "beside", "dashboard"]
