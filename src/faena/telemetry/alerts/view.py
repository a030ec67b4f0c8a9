"""Alerts as readers see them, at one instant."""

from __future__ import annotations

from faena.engine.calls.alerts import LEVELS, Found, Past, Stored, StoredSilence
from faena.values.view import View


class AlertView(View, frozen=True, kw_only=True):
    """One alert that fires, or will if it goes on."""

    rule: str
    subject: str
    """What it is about: a queue, an upstream, a node, a budget or the app."""
    severity: str
    """warning or critical; of a pending one, what it will be."""
    since: int
    """When it began to fire, or to be pending."""
    text: str
    """The last value, in words."""
    is_silenced: bool


class SilenceView(View, frozen=True, kw_only=True):
    """No notices of some alerts, until an instant."""

    id: str
    rule: str | None
    """None: any, as with the subject."""
    subject: str | None
    since: int
    until: int
    by: str
    reason: str

    def covers(self, rule: str, subject: str) -> bool:
        """Whether it is about an alert."""
        return self.rule in {None, rule} and self.subject in {None, subject}


class AlertChange(View, frozen=True, kw_only=True):
    """How an alert changed."""

    at: int
    change: str
    """firing, escalated, eased or resolved."""
    rule: str
    subject: str
    severity: str
    since: int
    """When it began to fire."""
    text: str
    is_silenced: bool


class AlertsView(View, frozen=True, kw_only=True):
    """All alerts of a broker's namespace, also those that other programs judge."""

    at: int
    firing: tuple[AlertView, ...]
    """Critical ones first; silenced ones too."""
    pending: tuple[AlertView, ...]
    """Beyond a bound, but not for long enough."""
    silences: tuple[SilenceView, ...]
    history: tuple[AlertChange, ...]
    """The latest changes first; about a thousand are kept."""
    undelivered: int
    """Notices that no job could be made of yet."""

    @property
    def silenced(self) -> tuple[AlertView, ...]:
        """Those that fire and are silenced."""
        return tuple(one for one in self.firing if one.is_silenced)

    also = ("silenced",)


def alerts_view(found: Found) -> AlertsView:
    """What the broker has stored, for readers."""
    silences = tuple(
        _silence(name, one) for name, one in sorted(found.silences.items()) if one.u > found.now
    )
    views = [_alert(about, one, silences) for about, one in sorted(found.alerts.items())]
    firing = [view for view, is_firing in views if is_firing]
    return AlertsView(
        at=found.now,
        firing=tuple(sorted(firing, key=lambda one: -LEVELS.index(one.severity))),
        pending=tuple(view for view, is_firing in views if not is_firing and view.since),
        silences=silences,
        history=tuple(map(_change, found.history)),
        undelivered=found.undelivered,
    )


def _alert(about: str, stored: Stored, silences: tuple[SilenceView, ...]) -> tuple[AlertView, bool]:
    rule, _, subject = about.partition(" ")
    is_firing = stored.level > 0
    severity = LEVELS[int(stored.level)] or ("critical" if stored.critical else "warning")
    view = AlertView(
        rule=rule,
        subject=subject,
        severity=severity,
        since=int(stored.s if is_firing else stored.pending or stored.critical),
        text=stored.x,
        is_silenced=any(one.covers(rule, subject) for one in silences),
    )
    return view, is_firing


def _silence(name: str, one: StoredSilence) -> SilenceView:
    return SilenceView(
        id=name,
        rule=one.r or None,
        subject=one.s or None,
        since=int(one.a),
        until=int(one.u),
        by=one.b,
        reason=one.y,
    )


def _change(past: Past) -> AlertChange:
    return AlertChange(
        at=past.at,
        change=past.kind,
        rule=past.rule,
        subject=past.subject,
        severity=past.severity,
        since=past.since,
        text=past.text,
        is_silenced=past.is_silenced,
    )
