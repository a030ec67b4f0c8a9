"""Alerts: what fires, worst first, whom nobody is told of, what has changed, and who is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.responses import Response

from faena.options.alerts import RULES
from faena.options.channels import Channel
from faena.telemetry.alerts.view import AlertsView, AlertView, SilenceView
from faena.web.answer import Refusal
from faena.web.figure import Figures
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.template import spoken
from faena.web.words import Speaker

if TYPE_CHECKING:
    from faena.app import Faena

_SHOWN: Final = 100
_PER_PAGE: Final = 50
_HISTORY: Final = 1_000


class Told(NamedTuple):
    """One channel."""

    name: str
    kind: str
    severity: str
    """From which severity on it is told."""
    about: str
    """What it is for; empty: all."""


async def alerts(visit: Visit) -> Response:
    """What fires, and all around it."""
    query, say = visit.request.query_params, Speaker(spoken(visit))
    rule, subject = query.get("rule") or None, query.get("subject") or None
    if rule is not None and rule not in RULES:
        raise Refusal(422, "invalid", f"rule must be one of {', '.join(RULES)}")
    first = _place(query.get("from"))
    view = await visit.app.alerts(history=_HISTORY if rule or subject or first else _PER_PAGE + 1)
    chosen = [
        one
        for one in view.history
        if (rule is None or one.rule == rule) and (subject is None or one.subject == subject)
    ]
    options = visit.app.alert_options
    return visit.site.templates.page(
        visit,
        "alerts.html",
        view=view,
        summary=_summary(view, say),
        firing=view.firing[:_SHOWN],
        pending=view.pending[:_SHOWN],
        silences=[(one, _quiet(one, view.firing)) for one in view.silences[:_SHOWN]],
        history=chosen[first : first + _PER_PAGE],
        next=first + _PER_PAGE if len(chosen) > first + _PER_PAGE else None,
        rule=rule,
        subject=subject,
        rules=RULES,
        subjects=_subjects(visit.app, view),
        place_of=partial(_place_of, visit.app),
        channels=None if options is None else [*map(_told, options.channels)],
        query=dict(query),
    )


def _quiet(silence: SilenceView, firing: Sequence[AlertView]) -> int:
    """How many alerts that fire it keeps quiet."""
    return sum(silence.covers(one.rule, one.subject) for one in firing)


def _subjects(app: Faena, view: AlertsView) -> list[str]:
    """What a silence can be about."""
    under_way = {one.subject for one in (*view.firing, *view.pending)}
    return sorted({*app.queues, *app.upstreams, *under_way, app.name})


def _place_of(app: Faena, subject: str) -> str | None:
    """The page of what an alert is about."""
    if subject in app.queues:
        return f"/queues/{subject}"
    return f"/upstreams/{subject}" if subject in app.upstreams else None


def _told(channel: Channel) -> Told:
    about = [*(channel.rules or ()), *(channel.subjects or ())]
    kind = type(channel).__name__
    return Told(channel.name, kind, channel.severity, ", ".join(about))


def _place(given: str | None) -> int:
    if given is None:
        return 0
    if not (given.isascii() and given.isdigit() and len(given) < 5):
        raise Refusal(422, "invalid", "this is no place in the history: begin at its start")
    return int(given)


def _summary(view: AlertsView, say: Speaker) -> str:
    write = Figures(say)
    loud = [one for one in view.firing if not one.is_silenced]
    words = list[str]()
    if loud:
        worst = loud[0]
        words.append(
            say(
                "{n} {n|alert fires|alerts fire}. The worst: {rule} of {subject}, for {time}: "
                "{text}.",
                n=len(loud),
                rule=worst.rule,
                subject=worst.subject,
                time=write.duration(view.at - worst.since),
                text=worst.text,
            )
        )
    elif view.firing:
        words.append(say("All that fires is silenced."))
    else:
        words.append(say("Nothing fires."))
    if view.pending:
        words.append(
            say("{n} more {n|is|are} beyond a bound, not for long yet.", n=len(view.pending))
        )
    if view.undelivered:
        words.append(say("{n} {n|notice waits|notices wait} to be sent.", n=view.undelivered))
    return " ".join(words)


async def _figures(site: Site, say: Speaker) -> Mapping[str, str]:
    view = await site.app.alerts(history=0)
    write, found = Figures(say), {"summary": _summary(view, say)}
    for one in (*view.firing[:_SHOWN], *view.pending[:_SHOWN]):
        found[f"{one.rule} {one.subject}.text"] = one.text
        found[f"{one.rule} {one.subject}.since"] = write.duration(view.at - one.since)
    return found


def channel(site: Site, say: Speaker, _query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab with the alerts listens to."""
    return ("alerts", say.language), lambda: _figures(site, say)
