"""Capacity: how many slots queues need, and what would be with other slots, limits, weights."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

from starlette.responses import Response

from faena.errors import ConfigError
from faena.options.settings import Settings
from faena.queue import Queue
from faena.telemetry.advice.queue_advice import QueueAdvice
from faena.telemetry.advice.replay import WhatIf
from faena.web.advised import Change, TooLong
from faena.web.answer import Refusal
from faena.web.page.advice import Words, replayed, told
from faena.web.page.queue import queue_of
from faena.web.route import Visit
from faena.web.template import spoken
from faena.web.words import Speaker

WINDOWS: Final = {"15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d"}
REPLAYED: Final = {"15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h"}
"""A replay is of a day at most."""
_USUAL: Final = "1h"
_RANKS: Final = {"critical": 0, "warning": 1, "healthy": 2}
_PER_PAGE: Final = 50
_TENANTS: Final = 5
_LOOKED_AT: Final = 50
_LATELY_MIN: Final = 10
_LEAST_TOP: Final = 10
_LEAST_RATE: Final = 5
_MOST_RATE: Final = 500
_WEIGHT: Final = "weight."
_AGAIN_S: Final = "5"


class Asked(NamedTuple):
    """What the form says, as it is to be shown again."""

    slots: str
    rate: str
    """The limits, in percent of what they are."""
    limits: str
    is_without: bool
    weights: Mapping[str, str]


async def capacity(visit: Visit) -> Response:
    """Advice for all queues, those that want most first."""
    say, query = Speaker(spoken(visit)), visit.request.query_params
    window, first = _window(query.get("window"), WINDOWS), _place(query.get("from"))
    found, is_whole = await visit.site.advised.advice(window)
    ranked = sorted(
        found.values(), key=lambda one: (_RANKS[one.status], -(one.utilization or 0), one.queue)
    )
    rows = [told(one, say) for one in ranked[first : first + _PER_PAGE]]
    answer = visit.site.templates.page(
        visit,
        "capacity.html",
        rows=rows,
        summary=Words(say).summary(ranked, len(visit.app.queues)),
        number=len(ranked),
        all=len(visit.app.queues),
        is_whole=is_whole,
        next=first + _PER_PAGE if len(ranked) > first + _PER_PAGE else None,
        window=window,
        windows=WINDOWS,
    )
    return answer if is_whole else _again(answer)


async def queue(visit: Visit) -> Response:
    """What one queue needs, and what it would be with a change."""
    chosen, say, query = queue_of(visit), Speaker(spoken(visit)), visit.request.query_params
    window = _window(query.get("window"), REPLAYED)
    (advice,), settings, tenants = await asyncio.gather(
        visit.app.advice(chosen, window=window),
        chosen.settings(),
        _busiest(chosen),
    )
    asked = _asked(query)
    change, problem, status = None, "", 200
    try:
        change = _change(chosen, window, asked, advice, settings, tenants)
        outcome = None if change is None else await visit.site.advised.replay(change)
    except (ConfigError, Refusal) as error:
        outcome, problem, status = None, str(error), 422
    except TooLong:
        outcome = None
        problem = say("There is too much to replay at once: choose a shorter window.")
    is_ready = isinstance(outcome, WhatIf)
    answer = visit.site.templates.page(
        visit,
        "what-if.html",
        status=status,
        queue=chosen,
        row=told(advice, say),
        advice=advice,
        settings=settings,
        weights=_weights(tenants, asked),
        asked=asked,
        most=_most_slots(advice, settings),
        slots=asked.slots or str(advice.slots),
        window=window,
        windows=REPLAYED,
        is_asked=change is not None,
        found=replayed(outcome, say) if is_ready else None,
        under_way=None if is_ready or outcome is None else outcome,
        problem=problem,
    )
    return answer if is_ready or outcome is None else _again(answer)


async def _busiest(queue: Queue) -> dict[str, float]:
    """The weights of the tenants that had most jobs lately, or have most now."""
    if not queue.options.is_fair:
        return {}
    now, lately = await asyncio.gather(
        queue.tenants(limit=_LOOKED_AT), queue.shares(minutes=_LATELY_MIN)
    )
    weights = {one.tenant: one.weight or 1.0 for one in now if one.tenant is not None}
    jobs = Counter[str]({one.tenant: one.live for one in now if one.tenant is not None})
    for minute in lately:
        for name, given in minute.given.items():
            jobs[name] += round(given * weights.get(name, 1.0))
    named = (name for name, _ in jobs.most_common() if name)
    return {name: weights.get(name, 1.0) for name in islice(named, _TENANTS)}


def _again(answer: Response) -> Response:
    """Without a script too, the page is asked for again while something is being made."""
    answer.headers["Refresh"] = _AGAIN_S
    return answer


def _window(given: str | None, windows: Mapping[str, str]) -> str:
    window = given or _USUAL
    if window not in windows:
        raise Refusal(422, "invalid", f"window must be one of {', '.join(windows)}")
    return window


def _place(given: str | None) -> int:
    if given is None:
        return 0
    if not (given.isascii() and given.isdigit() and len(given) < 6):
        raise Refusal(422, "invalid", "this is no place in the list of queues: begin at its start")
    return int(given)


# -- what is asked --------------------------------------------------------------------------------


def _asked(query: Mapping[str, str]) -> Asked:
    weights = {
        name.removeprefix(_WEIGHT): one for name, one in query.items() if name.startswith(_WEIGHT)
    }
    return Asked(
        slots=query.get("slots", "").strip(),
        rate=query.get("rate", "").strip(),
        limits=query.get("limits", "").strip(),
        is_without=bool(query.get("without")),
        weights=weights,
    )


def _change(
    queue: Queue,
    window: str,
    asked: Asked,
    advice: QueueAdvice,
    settings: Settings,
    tenants: Mapping[str, float],
) -> Change | None:
    """What differs from how it is; None where nothing does."""
    slots = _whole("slots", asked.slots) if asked.slots else None
    if slots == advice.slots:
        slots = None
    given = {name: _real(name, one) for name, one in asked.weights.items() if one}
    other = tuple(
        sorted((name, one) for name, one in given.items() if one != tenants.get(name, 1.0))
    )
    limits = _limits(asked, settings)
    if slots is None and limits is None and not other:
        return None
    return Change(queue.name, window, slots, limits, other or None)


def _limits(asked: Asked, settings: Settings) -> tuple[str, ...] | None:
    """Other limits of the queue; None: as they are."""
    if asked.is_without:
        return ()
    if asked.limits:
        return tuple(part.strip() for part in asked.limits.split(",") if part.strip())
    percent = _whole("rate", asked.rate) if asked.rate else 100
    if not _LEAST_RATE <= percent <= _MOST_RATE:
        words = f"rate must be between {_LEAST_RATE} and {_MOST_RATE} percent, got {percent}"
        raise Refusal(422, "invalid", words)
    if percent == 100:
        return None
    own = [one for one in settings.limits if one.cost is None]
    return tuple(f"{max(1, one.max * percent // 100)}/{one.per_us}us" for one in own)


def _whole(name: str, given: str) -> int:
    if not (given.isascii() and given.isdigit() and 0 < len(given) < 8):
        raise Refusal(422, "invalid", f"{name} must be a whole number, got {given[:40]}")
    return int(given)


def _real(name: str, given: str) -> float:
    try:
        return float(given)
    except ValueError:
        words = f"the weight of {name[:60]} must be a number, got {given[:40]}"
        raise Refusal(422, "invalid", words) from None


def _weights(tenants: Mapping[str, float], asked: Asked) -> list[tuple[str, str]]:
    """A slider for each of the busiest tenants, and for those that are asked about."""
    names = dict.fromkeys([*tenants, *asked.weights])
    return [
        (name, asked.weights.get(name) or f"{tenants.get(name, 1.0):g}")
        for name in islice(names, 2 * _TENANTS)
    ]


def _most_slots(advice: QueueAdvice, settings: Settings) -> int:
    """Where the slider ends: well beyond what could be right, within what is possible."""
    wanted = [advice.slots, advice.recommended_slots or 0, advice.peak_slots or 0]
    wanted.append(advice.objective_slots or 0)
    most = max(_LEAST_TOP, 2 * max(wanted))
    return most if settings.max_running is None else min(most, settings.max_running)
