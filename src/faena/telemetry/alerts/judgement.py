"""What a rule says of one value: a reading with its bounds and its channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from faena.engine.calls.alerts import Reading
from faena.options.alerts import Alerts, Rule
from faena.options.thresholds import value_text

Bounds = tuple[float | None, float | None]

_NONE: Final = -1.0


class Judgement:
    """The rules and channels of an app."""

    def __init__(self, options: Alerts) -> None:
        self._options = options

    def has(self, rule: str) -> bool:
        """Whether a rule is on."""
        return rule in self._options.settled

    def reading(
        self,
        rule: str,
        subject: str,
        value: float,
        text: str,
        *,
        bounds: Bounds | None = None,
        own: Mapping[str, Bounds] | None = None,
    ) -> Reading | None:
        """A value as it is judged; None if the rule is off. `bounds` are those of the alert itself,
        `own` those that its queue has."""
        terms = self._options.settled.get(rule)
        if terms is None:
            return None
        if bounds is None:
            bounds = (own or {}).get(rule, self._options.bounds[rule])
        if bounds == (None, None):
            return None
        warning, critical = bounds
        return Reading(
            rule=rule,
            subject=subject,
            value=value,
            text=f"{text} ({_bounds_text(rule, warning, critical)})",
            warning=_NONE if warning is None else warning,
            critical=_NONE if critical is None else critical,
            ease_warning=_ease(terms, warning),
            ease_critical=_ease(terms, critical),
            sustained_us=terms.sustained_us,
            clear_after_us=terms.clear_after_us,
            repeat_us=terms.repeat_us,
            channels=self._channels(rule, subject, "warning"),
            critical_channels=self._channels(rule, subject, "critical"),
        )

    def _channels(self, rule: str, subject: str, severity: str) -> list[str]:
        channels = self._options.channels
        return [one.name for one in channels if one.takes(rule, subject, severity)]


def _ease(rule: Rule, bound: float | None) -> float:
    return _NONE if bound is None else bound * rule.clear


def _bounds_text(rule: str, warning: float | None, critical: float | None) -> str:
    if rule in _ORDINAL:
        return _ORDINAL[rule]
    told = (("warning", warning), ("critical", critical))
    return ", ".join(
        f"{name} from {value_text(rule, bound)}" for name, bound in told if bound is not None
    )


_ORDINAL: Final = {"breaker": "a panic is critical"}
"""Rules whose bounds are no measure."""
