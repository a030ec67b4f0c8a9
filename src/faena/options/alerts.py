"""When somebody is told that something is wrong, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from faena.errors import ConfigError, shown, unknown_name
from faena.options.channels import Channel, Log
from faena.options.fields import check_is, derive
from faena.options.thresholds import Pair, check_pair
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_fields

SECOND_US: Final = 1_000_000

_LEVELS: Final[Mapping[str, Pair]] = {
    "depth": (100, 300),
    "backlog": (1_000, None),
    "wait": ("30s", "2m"),
    "error_rate": (5, 15),
    "stalled": (5, 20),
    "utilization": (95, None),
    "silent": ("2m", "5m"),
    "dead_surge": (None, None),
    "dead_many": (None, None),
    "dead_old": (None, None),
    "memory": (80, 90),
    "missed_schedules": (1, None),
    "breaker": (1, 2),
    "budget": (None, None),
}
"""The bounds of each rule; those without any have theirs elsewhere, or are off."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "dead_surge": "alert_new of DeadLetters",
    "dead_many": "alert_waiting of DeadLetters",
    "dead_old": "alert_age of DeadLetters",
    "budget": "thresholds of Budget",
}
"""Rules whose bounds are declared with what they are about."""

RULES: Final = tuple(_LEVELS)


@known_fields("rule")
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one kind of alert is judged; what is left out is as by default."""

    levels: Pair | None = None
    """The bounds (warning, critical); None: the usual ones. Queues may have their own."""

    sustained: Duration = "0s"
    """How long a value must be beyond a bound before the alert fires."""

    clear: float = 0.8
    """The share of a bound below which an alert ends at once: more than 0, at most 1."""

    clear_after: Duration = "5m"
    """How long a value between that and the bound is waited for before the alert ends as well."""

    repeat: Duration | None = None
    """How often a notice is sent again while the alert lasts; None: never."""

    sustained_us: int = field(init=False, repr=False, compare=False)
    clear_after_us: int = field(init=False, repr=False, compare=False)
    repeat_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given: Any = self.clear
        is_share = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_share or not 0 < given <= 1:
            raise ConfigError(
                f"clear must be a share above 0 and at most 1, got {shown(self.clear)}",
                field="clear",
                value=self.clear,
            )
        derive(self, "sustained_us", to_us("sustained", self.sustained))
        derive(self, "clear_after_us", to_us("clear_after", self.clear_after))
        repeat = self.repeat
        least = 60 * SECOND_US
        derive(self, "repeat_us", 0 if repeat is None else to_us("repeat", repeat, least_us=least))


_USUAL: Final[Mapping[str, Rule]] = {
    "backlog": Rule(sustained="5m"),
    "utilization": Rule(sustained="15m"),
    "silent": Rule(clear=1.0, clear_after="0s"),
    "breaker": Rule(clear=1.0, clear_after="0s"),
    "missed_schedules": Rule(clear=1.0, clear_after="0s"),
    "memory": Rule(clear=0.95),
}


@known_fields("alerts")
@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """What an app watches, and whom it tells."""

    channels: Sequence[Channel] = (Log(),)
    """Where notices go; each has a name of its own."""

    rules: Mapping[str, Rule | None] = field(default_factory=dict[str, Rule | None])
    """How single rules are judged, by name; None turns a rule off."""

    interval: Duration = "30s"
    """How often everything is judged, however many workers there are: 1s to 10m."""

    interval_us: int = field(init=False, repr=False, compare=False)
    settled: dict[str, Rule] = field(init=False, repr=False, compare=False)
    """The rules that are on, in full."""
    bounds: dict[str, tuple[float | None, float | None]] = field(
        init=False, repr=False, compare=False
    )
    """The bounds of each rule that is on."""

    def __post_init__(self) -> None:
        self._check_channels()
        check_is("rules", self.rules, Mapping)
        for name, rule in self.rules.items():
            _check_rule(name, rule)
        least, most = SECOND_US, 600 * SECOND_US
        us = to_us("interval", self.interval, least_us=least, most_us=most)
        derive(self, "interval_us", us)
        chosen = {name: self.rules.get(name, _USUAL.get(name, Rule())) for name in RULES}
        rules = {name: rule for name, rule in chosen.items() if rule is not None}
        derive(self, "settled", rules)
        levels = {name: rule.levels or _LEVELS[name] for name, rule in rules.items()}
        derive(self, "bounds", {name: check_pair(name, pair) for name, pair in levels.items()})

    def _check_channels(self) -> None:
        given: Any = self.channels
        if not isinstance(given, list | tuple) or not all(isinstance(x, Channel) for x in given):  # pyright: ignore[reportUnknownVariableType]
            raise ConfigError(
                f"channels must be a list of Log, Webhook, Mail or Chat, got {shown(given)}",
                field="channels",
                value=given,
            )
        names = [one.name for one in self.channels]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(
                    f"channel {name} must be declared once, got it again: give one of the two "
                    f"another name",
                    field="channels",
                    value=name,
                )
        for channel in self.channels:
            for rule in channel.rules or ():
                check_rule_name(rule)
        derive(self, "channels", tuple(self.channels))

    def channel(self, name: str) -> Channel:
        """A channel by its name."""
        known = {one.name: one for one in self.channels}
        if name not in known:
            raise unknown_name("channel", name, known, field="channel", value=name)
        return known[name]


def check_rule_name(name: str) -> None:
    """Refuse a rule that there is none of."""
    if name not in RULES:
        raise unknown_name("rule", name, RULES, field="rule", value=name)


def _check_rule(name: str, rule: Rule | None) -> None:
    check_rule_name(name)
    if rule is None:
        return
    check_is(f"rule {name}", rule, Rule)
    if rule.levels is None:
        return
    if name in ELSEWHERE:
        raise ConfigError(
            f"levels of rule {name} must be left out, got {shown(rule.levels)}: they are the "
            f"{ELSEWHERE[name]}",
            field="levels",
            value=rule.levels,
        )
    check_pair(name, rule.levels)
