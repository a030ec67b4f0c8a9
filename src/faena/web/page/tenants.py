"""Tenants over all queues: who takes all, who waits for their own limits, who is held."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from faena.tenancy.tenants import TenantView
from faena.values.cursor import read_cursor, write_cursor
from faena.values.names import LABEL_MAX
from faena.web.answer import Refusal
from faena.web.census import Reading, Standing
from faena.web.figure import Figures
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.template import spoken
from faena.web.words import Speaker

WINDOWS: Final[Mapping[str, tuple[str, int]]] = {
    "1m": ("This minute", 1),
    "5m": ("5 min", 5),
    "15m": ("15 min", 15),
}
"""Window → its name, and its full minutes."""
_PER_PAGE: Final = 50
_FOLLOWED: Final = 200
"""The busiest ones, whose figures an open page keeps up to date."""
_TONES: Final = 5
_SHOWN: Final = 3
_GAP: Final = 0.2

Rank = Callable[[Standing], float]
ORDERS: Final[Mapping[str, tuple[str, Rank, bool]]] = {
    "busiest": ("Busiest", lambda one: one.live, False),
    "slowest": ("Longest wait", lambda one: one.wait_us or 0.0, False),
    "throttled": ("Throttled", lambda one: one.throttled_us, True),
    "decided": ("Decided for", lambda one: len(one.decided), True),
    "name": ("By name", lambda _: 0.0, False),
}
"""Order → its name, what ranks a tenant, and whether those of zero are left out."""


class Row(NamedTuple):
    """One tenant as the table shows it."""

    name: str
    share: str
    width: float
    waiting: str
    wait: str
    throttled: str
    is_slow: bool
    is_throttled: bool
    running: str
    chips: Sequence[tuple[str, str]]
    """Kind and words of what is decided for it."""


class Asked(NamedTuple):
    """What the address asks for."""

    window: str
    order: str
    text: str
    cursor: str | None

    @classmethod
    def of(cls, query: Mapping[str, Any]) -> Asked:
        """Read it; what makes no sense is refused in words."""
        window, order = query.get("window") or "1m", query.get("order") or "busiest"
        text = (query.get("q") or "").strip()
        if window not in WINDOWS:
            raise Refusal(422, "invalid", f"window must be one of {', '.join(WINDOWS)}")
        if order not in ORDERS:
            raise Refusal(422, "invalid", f"order must be one of {', '.join(ORDERS)}")
        if len(text) > LABEL_MAX:
            words = f"the name that is looked for must be at most {LABEL_MAX} characters"
            raise Refusal(422, "invalid", words)
        return cls(window, order, text, query.get("cursor") or None)


async def tenants(visit: Visit) -> Response:
    """All tenants, page by page."""
    query = visit.request.query_params
    asked = Asked.of(query)
    minutes = WINDOWS[asked.window][1]
    reading = await visit.site.census.read(minutes, is_after_change="done" in query)
    say = Speaker(spoken(visit))
    writer = Writer(reading, say)
    shown, number, cursor = _page(reading, asked)
    costs = await visit.app.tenant_costs(*(one.tenant for one in shown if one.tenant))
    return visit.site.templates.page(
        visit,
        "tenants.html",
        asked=asked,
        orders=ORDERS,
        windows=WINDOWS,
        reading=reading,
        rows=[writer.row(one) for one in shown],
        costs=costs,
        number=number,
        cursor=cursor,
        summary=writer.summary(),
        shares=writer.shares(),
        facts=writer.facts(),
    )


def _page(reading: Reading, asked: Asked) -> tuple[list[Standing], int, str | None]:
    """One page, how many match in all, and where the next one begins."""
    _, rank, is_partial = ORDERS[asked.order]
    text = asked.text.casefold()
    found = [
        one
        for name, one in reading.tenants.items()
        if text in name.casefold() and (not is_partial or rank(one))
    ]

    def key(one: Standing) -> tuple[float, str]:
        return -rank(one), one.tenant

    about = (asked.window, asked.order, asked.text)
    behind = found
    if asked.cursor is not None:
        reached = read_cursor(asked.cursor, about, "this list of tenants")
        after = float(reached.score or 0), reached.id
        behind = [one for one in found if key(one) > after]
    shown = heapq.nsmallest(_PER_PAGE, behind, key=key)
    if len(behind) <= _PER_PAGE:
        return shown, len(found), None
    last = key(shown[-1])
    return shown, len(found), write_cursor(about, repr(last[0]), last[1])


class Writer:
    """Writes a reading for one reader."""

    def __init__(self, reading: Reading, say: Speaker) -> None:
        self._reading, self._say, self._write = reading, say, Figures(say)
        shares = (reading.share(one) or 0.0 for one in reading.tenants.values())
        self._most = max(shares, default=0.0)

    def row(self, one: Standing) -> Row:
        """One tenant."""
        write, share = self._write, self._reading.share(one)
        is_waiting = one.live > one.running
        wait = self._say("held") if one.is_held and is_waiting else write.duration(one.wait_us)
        return Row(
            name=one.tenant,
            share=write.percent(share),
            width=round(100 * (share or 0.0) / self._most, 1) if self._most else 0.0,
            waiting=write.number(max(0, one.live - one.running)),
            wait=wait,
            throttled=write.duration(one.throttled_us),
            is_slow=one.is_held and is_waiting,
            is_throttled=one.throttled_us > 0,
            running=write.number(one.running),
            chips=chips(one.decided, self._say),
        )

    def summary(self) -> str:
        """What is wrong, and for whom."""
        every = self._reading.tenants.values()
        held = sum(one.is_held for one in every)
        throttled = sum(one.throttled_us > 0 and not one.is_held for one in every)
        return self._say(
            "{held} {held|tenant is|tenants are} held, {throttled} {throttled|waits|wait} for "
            "limits of their own; {busy} of {all} have work",
            held=held,
            throttled=throttled,
            busy=sum(one.live > 0 for one in every),
            all=len(every),
        )

    def facts(self) -> list[tuple[str, str, str]]:
        """What keeps tenants: title, how many, and what follows."""
        every, say = self._reading.tenants.values(), self._say
        held = [one.tenant for one in every if one.is_held]
        kept = sum(one.throttled_us > 0 and not one.is_held for one in every)
        free = sum(
            one.live > one.running and not one.throttled_us and not one.is_held for one in every
        )

        def number(n: int) -> str:
            return say("{number} {n|tenant|tenants}", n=n, number=self._write.number(n))

        names = ", ".join(name or say("without a tenant") for name in sorted(held)[:_SHOWN])
        more = "" if len(held) <= _SHOWN else " …"
        return [
            ("Held by somebody", number(len(held)), f"{names}{more}"),
            ("Wait for limits of their own", number(kept), say("more workers would not help")),
            ("Wait for their turn", number(free), say("more slots would help")),
            ("Fairness", self._write.number(self._reading.fairness, 2), say("of 1 (Jain)")),
        ]

    def shares(self) -> list[tuple[str, float, float, str, str]]:
        """The bar of who was given what: class, start, width, name and share."""
        reading, say = self._reading, self._say
        every = [one for one in reading.tenants.values() if one.given]
        first = heapq.nlargest(_TONES, every, key=lambda one: one.given)
        parts = [
            (f"tone-{at}", one.tenant or say("without a tenant"), reading.share(one) or 0.0)
            for at, one in enumerate(first, 1)
        ]
        others = len(every) - len(first)
        if others:
            rest = 1.0 - sum(part for _, _, part in parts)
            words = say("{number} others", number=self._write.number(others))
            parts.append(("fills-rest", words, max(0.0, rest)))
        found, at = list[tuple[str, float, float, str, str]](), 0.0
        for kind, name, part in parts:
            width = 100 * part
            shown = round(max(0.2, width - _GAP), 1)
            found.append((kind, round(at, 1), shown, name, self._write.percent(part)))
            at += width
        return found


def chips(decided: Sequence[tuple[str, TenantView]], say: Speaker) -> list[tuple[str, str]]:
    """What is decided for a tenant, each thing once for all queues."""
    found = dict[tuple[str, str], None]()
    for _, view in decided:
        if view.is_held:
            found["held", view.reason or say("held")] = None
        if view.weight is not None:
            found["plain", say("weight {number}", number=f"{view.weight:g}")] = None
        if view.limits is not None:
            words = ", ".join(map(str, view.limits)) or say("no limits")
            found["plain", words] = None
        if view.max_running is not None:
            found["plain", say("{n} running", n=view.max_running)] = None
        if view.size is not None:
            found["plain", say("at most {n} jobs", n=view.size)] = None
        if view.is_dedicated:
            found["plain", say("own shard")] = None
    return [*found]


async def _figures(site: Site, window: str, say: Speaker) -> Mapping[str, str]:
    reading = await site.census.read(WINDOWS[window][1])
    writer = Writer(reading, say)
    found = {"summary": writer.summary()}
    busiest = heapq.nlargest(_FOLLOWED, reading.tenants.values(), key=lambda one: one.live)
    for one in busiest:
        row = writer.row(one)
        for part in ("share", "waiting", "wait", "throttled", "running"):
            found[f"{one.tenant}.{part}"] = getattr(row, part)
    return found


def channel(site: Site, say: Speaker, query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab that shows this page listens to."""
    window = Asked.of(query).window
    return ("tenants", window, say.language), lambda: _figures(site, window, say)
