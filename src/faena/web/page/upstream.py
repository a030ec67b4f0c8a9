"""Outside services and what the program can do for its users: which take no calls, why, until when,
and what an operator may decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from faena.engine.calls.upstreams import LimitUse, UpstreamView
from faena.resilience.feature_views import STATES, FeaturesView, FeatureView
from faena.values.names import check_name
from faena.web.answer import not_found
from faena.web.figure import Figures
from faena.web.page.budget import Bar, bars
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.standing import is_troubled
from faena.web.template import spoken
from faena.web.words import Speaker

_RANKS: Final = {"crit": 0, "warn": 1, "ok": 2}
_STEPS: Final = ("closed", "open", "half_open", "recovering")


class Limit(NamedTuple):
    """One limit and its use."""

    words: str
    used: str
    left: str
    width: float
    opens: str
    is_tenants: bool


class Row(NamedTuple):
    """One upstream."""

    view: UpstreamView
    kind: str
    word: str
    says: str
    """Why, since when, and what happens next by itself."""
    failed: str
    limits: Sequence[Limit]
    budgets: Sequence[Bar]


async def upstreams(visit: Visit) -> Response:
    """All upstreams, features and levels, worst first."""
    say = Speaker(spoken(visit))
    rows, features = await _read(visit.site, say)
    ranked = sorted(
        features.features.values(), key=lambda one: (-STATES.index(one.state), one.name)
    )
    return visit.site.templates.page(
        visit,
        "upstreams.html",
        rows=rows,
        summary=_summary(rows, say),
        features=ranked,
        limited=sum(not one.is_healthy for one in ranked),
        view=features,
        own_features=set(visit.app.features),
        own_levels=set(visit.app.features.levels),
        own=set(visit.app.upstreams),
    )


async def upstream(visit: Visit) -> Response:
    """One of them; `tenant` shows what counts for the calls of one tenant."""
    name, say = visit.request.path_params["upstream"], Speaker(spoken(visit))
    tenant = visit.request.query_params.get("tenant") or None
    known = {one.name for one in await visit.app.upstream_views()}
    if name not in known:
        raise not_found(f"upstream {name}")
    view, features = await asyncio.gather(
        visit.app.upstream_control.view(name, tenant=tenant), visit.app.features()
    )
    own = visit.app.upstreams.get(name)
    return visit.site.templates.page(
        visit,
        "upstream.html",
        row=row_of(view, say),
        view=view,
        steps=_STEPS,
        tenant=tenant,
        options=None if own is None else own.options,
        features=[one for one in features.features.values() if _depends(one, name)],
    )


async def _read(site: Site, say: Speaker) -> tuple[list[Row], FeaturesView]:
    found, features = await asyncio.gather(site.app.upstream_views(), site.app.features())
    rows = [row_of(one, say) for one in found]
    rows.sort(key=lambda one: (_RANKS[one.kind], one.view.name))
    return rows, features


def _depends(feature: FeatureView, upstream: str) -> bool:
    """Whether something of this upstream makes the feature worse now."""
    return any(one.source.partition(":")[2] == upstream for one in feature.sources)


def row_of(view: UpstreamView, say: Speaker) -> Row:
    """How one is, in words."""
    write = Figures(say)
    kind, word, says = _Words(view, say, write).state()
    return Row(
        view=view,
        kind=kind,
        word=word,
        says=says,
        failed=say(
            "{failed} of {calls}", failed=write.number(view.failed), calls=write.number(view.calls)
        ),
        limits=[_limit(one, view.at, write) for one in view.limits],
        budgets=bars(view.budgets, view.at, say),
    )


def _limit(use: LimitUse, now: int, write: Figures) -> Limit:
    return Limit(
        words=str(use.limit),
        used=f"{write.number(use.used)} / {write.number(use.max)}",
        left=write.number(max(0, use.max - use.used)),
        width=round(min(100.0, 100 * use.used / use.max), 1),
        opens=write.ago(use.opens_at, now) if use.opens_at else "",
        is_tenants=use.is_tenants,
    )


def _summary(rows: Sequence[Row], say: Speaker) -> str:
    bad = [one for one in rows if one.kind != "ok"]
    if not rows:
        return say("No program declares an upstream.")
    if not bad:
        return say("{n} {n|upstream takes|upstreams take} calls as usual.", n=len(rows))
    first = f"{bad[0].view.name}: {bad[0].says}"
    more = say("{n} more {n|needs|need} attention.", n=len(bad) - 1) if len(bad) > 1 else ""
    return f"{first} {more}".strip()


class _Words:
    """What is said of one upstream."""

    def __init__(self, view: UpstreamView, say: Speaker, write: Figures) -> None:
        self._view, self._say, self._write = view, say, write

    def state(self) -> tuple[str, str, str]:
        """How bad it is, a word, and a sentence or two; the worst reason counts."""
        for found in (self._panic(), self._breaker(), self._spent(), self._limited()):
            if found is not None:
                return found
        view, say = self._view, self._say
        if view.troubled:
            words = say("{n} {n|tenant is|tenants are} refused calls.", n=view.troubled)
            return "warn", say("Some tenants"), words
        if is_troubled(view):
            return "warn", say("Attention"), ""
        return "ok", say("Closed"), ""

    def _panic(self) -> tuple[str, str, str] | None:
        panic, say = self._view.panic, self._say
        if panic is None:
            return None
        words = say(
            "No call is permitted since {time}: {reason} ({who}).",
            time=self._ago(panic.since),
            reason=panic.reason,
            who=panic.by,
        )
        ends = (
            say("It lasts until somebody ends it.")
            if panic.until is None
            else say("It ends {time}.", time=self._ago(panic.until))
        )
        return "crit", say("In panic"), f"{words} {ends}"

    def _breaker(self) -> tuple[str, str, str] | None:
        view, say = self._view, self._say
        if view.state == "closed":
            return None
        why = say(
            "{failed} of {calls} calls failed, {time}.",
            failed=view.failed,
            calls=view.calls,
            time=self._ago(view.since) if view.since else say("more than an hour ago"),
        )
        if view.state == "open":
            return "crit", say("Open"), f"{why} {self._probe()}"
        if view.state == "half_open":
            return "warn", say("Probing"), f"{why} {say('Probes decide whether it closes.')}"
        words = say("More calls are permitted step by step.")
        return "warn", say("Recovering"), f"{why} {words}"

    def _probe(self) -> str:
        view, say = self._view, self._say
        if view.is_probe_due or view.next_probe_at is None:
            return say("The next call is the probe.")
        return say("The next probe goes {time}.", time=self._ago(view.next_probe_at))

    def _spent(self) -> tuple[str, str, str] | None:
        full, say = self._view.full_budgets, self._say
        if not full:
            return None
        words = say(
            "The budget of {amount} is used up; there is room {time}.",
            amount=self._write.money(full[0].amount),
            time=self._ago(full[0].ends_at),
        )
        return "crit", say("Budget used up"), words

    def _limited(self) -> tuple[str, str, str] | None:
        view, say = self._view, self._say
        if view.no_calls_until is not None:
            until = self._ago(view.no_calls_until)
            words = say("It wants no calls; they go on {time}.", time=until)
            return "warn", say("Rate limited"), words
        full = [one for one in view.limits if one.opens_at is not None]
        if not full:
            return None
        words = say(
            "The limit of {limit} is used up; there is room {time}.",
            limit=full[0].limit,
            time=self._ago(full[0].opens_at),
        )
        return "warn", say("Limit used up"), words

    def _ago(self, at: int | None) -> str:
        return self._write.ago(at, self._view.at)


# -- live -----------------------------------------------------------------------------------------


async def _figures(site: Site, say: Speaker, only: str | None) -> Mapping[str, str]:
    rows, features = await _read(site, say)
    found = {} if only else {"summary": _summary(rows, say)}
    for row in rows:
        name = row.view.name
        if only in {None, name}:
            found |= {f"{name}.word": row.word, f"{name}.says": row.says}
            found[f"{name}.failed"] = row.failed
            for number, limit in enumerate(row.limits):
                found[f"{name}.limit.{number}"] = limit.used
    if only is None:
        found |= {f"{one.name}.state": say(one.state) for one in features.features.values()}
    return found


def channel(site: Site, say: Speaker, _query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab with all upstreams listens to."""
    return ("upstreams", say.language), lambda: _figures(site, say, None)


def channel_of_one(site: Site, say: Speaker, query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab with one of them listens to."""
    name = check_name("upstream", str(query.get("upstream", "")))
    return ("upstream", name, say.language), lambda: _figures(site, say, name)
