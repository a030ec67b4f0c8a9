"""Upstreams, features and levels, budgets and costs."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from faena.engine.calls.budget_view import BudgetView
from faena.engine.calls.upstreams import UpstreamView
from faena.resilience.costs import CostReport
from faena.resilience.feature_views import FeaturesView, FeatureView, LevelView
from faena.web.answer import not_found
from faena.web.reading.reading import USUAL, Limited, Many, Paged, Reading, Rows, Wanted


class Whose(msgspec.Struct, forbid_unknown_fields=True):
    """Whose calls are meant."""

    tenant: str | None = None
    """None: all."""


class Budgets(msgspec.Struct, forbid_unknown_fields=True):
    """Whose budgets are meant."""

    tenant: str | None = None
    """Of budgets that each tenant has; none: of the one that has spent most."""
    limit: Limited = USUAL
    cursor: str | None = None


class Period(msgspec.Struct, forbid_unknown_fields=True):
    """Which time is meant; neither: this month so far."""

    month: str | None = None
    """Such as 2026-11."""
    day: str | None = None
    """Such as 2026-11-16, of UTC."""
    top: Annotated[int, msgspec.Meta(ge=0, le=100)] = 10
    """How many tenants are named for each upstream."""


async def _upstreams(wanted: Wanted) -> Rows:
    return wanted.page(await wanted.app.upstream_views(), lambda one: one.name, "upstreams")


async def _upstream(wanted: Wanted) -> UpstreamView:
    control = wanted.app.upstream_control
    return await control.view(wanted.where["upstream"], tenant=wanted.given.tenant)


async def _features(wanted: Wanted) -> FeaturesView:
    return await wanted.app.features()


async def _feature(wanted: Wanted) -> FeatureView:
    name = wanted.where["feature"]
    found = (await wanted.app.features()).features
    if name not in found:
        raise not_found(f"feature {name}")
    return found[name]


async def _levels(wanted: Wanted) -> Rows:
    found = (await wanted.app.features()).levels
    return wanted.page(found.values(), lambda one: one.name, "levels")


async def _budgets(wanted: Wanted) -> Rows:
    found = await wanted.app.budget_views(tenant=wanted.given.tenant)
    return wanted.page(
        found, lambda one: f"{one.upstream or ''} {one.per} {one.amount} {one.tenant}", "budgets"
    )


async def _costs(wanted: Wanted) -> CostReport:
    given = wanted.given
    return await wanted.app.cost_report(month=given.month, day=given.day, top=given.top)


READINGS: Final = (
    Reading(
        name="upstreams.list",
        path="/upstreams",
        text="All upstreams, also those of other programs: breakers, limits, budgets, panics.",
        answers=Many(UpstreamView),
        read=_upstreams,
        arguments=Paged,
    ),
    Reading(
        name="upstreams.show",
        path="/upstreams/{upstream}",
        text="One upstream, for all calls or for those of a tenant.",
        answers=UpstreamView,
        read=_upstream,
        arguments=Whose,
    ),
    Reading(
        name="features.list",
        path="/features",
        text="All features and levels, and the overall state.",
        answers=FeaturesView,
        read=_features,
    ),
    Reading(
        name="features.show",
        path="/features/{feature}",
        text="One feature, and everything that says it is not healthy.",
        answers=FeatureView,
        read=_feature,
    ),
    Reading(
        name="levels.list",
        path="/levels",
        text="All levels: saved sets of states.",
        answers=Many(LevelView),
        read=_levels,
        arguments=Paged,
    ),
    Reading(
        name="budgets.list",
        path="/budgets",
        text="All budgets, and how much of each is used now.",
        answers=Many(BudgetView),
        read=_budgets,
        arguments=Budgets,
    ),
    Reading(
        name="costs.report",
        path="/costs",
        text="What calls to upstreams have cost, by service, task, tenant and day.",
        answers=CostReport,
        read=_costs,
        arguments=Period,
    ),
)
