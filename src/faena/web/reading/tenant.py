"""The tenants of a queue."""

from __future__ import annotations

from typing import Final

from faena.tenancy.tenants import TenantView
from faena.web.answer import not_found
from faena.web.reading.reading import Many, Paged, Reading, Rows, Wanted

_MOST: Final = 1_000


async def _list(wanted: Wanted) -> Rows:
    found = await wanted.queue.tenants(limit=_MOST)
    return wanted.page(found, lambda one: one.tenant or "", "tenants")


async def _show(wanted: Wanted) -> TenantView:
    name, own = wanted.where["tenant"], wanted.caller.tenant
    if own is not None and name != own:
        raise not_found(f"tenant {name}")
    return await wanted.queue.tenant(name).view()


READINGS: Final = (
    Reading(
        name="tenants.list",
        path="/queues/{queue}/tenants",
        text="The 1,000 tenants with the most jobs, by name: jobs, holds, settings of their own.",
        answers=Many(TenantView),
        read=_list,
        arguments=Paged,
    ),
    Reading(
        name="tenants.show",
        path="/queues/{queue}/tenants/{tenant}",
        text="One tenant: its jobs, and what keeps them from starting.",
        answers=TenantView,
        read=_show,
        is_for_tenant=True,
    ),
)
