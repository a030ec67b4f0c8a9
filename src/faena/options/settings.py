"""The options of a queue that can be changed while it runs, as values and as strings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, TypedDict

from faena.errors import ConfigError, as_text, shown, unknown_name
from faena.limits import Limit
from faena.options.backpressure import Backpressure
from faena.options.fields import build
from faena.options.queue import QueueOptions
from faena.options.retain import Retain
from faena.values.duration import Duration, to_us
from faena.values.numbers import read_whole
from faena.values.view import View


class SettingFields(TypedDict, total=False):
    """What `Queue.configure` takes: options of `app.queue()`, with the same values."""

    limits: Sequence[Limit] | None
    tenant_limits: Sequence[Limit] | None
    key_limits: Sequence[Limit] | None
    learning: bool
    max_running: int | None
    tenant_max_running: int | None
    fair: bool | str
    on_failure: str
    backpressure: Backpressure | None
    retain: Retain
    lease: Duration
    max_deliveries: int
    age_step: Duration
    retry_boost: int
    events_kept: int


class Settings(View, frozen=True, kw_only=True):
    """The settings in force on a queue, named like its options; durations are strings."""

    limits: tuple[Limit, ...]
    tenant_limits: tuple[Limit, ...]
    key_limits: tuple[Limit, ...]
    learning: bool
    max_running: int | None
    tenant_max_running: int | None
    fair: str | bool
    """Whether tenants take turns, by "jobs" or by "time"; False if the queue has no lanes."""
    on_failure: str
    backpressure: Backpressure | None
    retain: Retain
    lease: str
    max_deliveries: int
    age_step: str
    retry_boost: int
    events_kept: int
    edited: tuple[str, ...]
    """The options changed at run time; `reset` returns them to the values in code."""


CHANGEABLE: Final = tuple(name for name in Settings.__struct_fields__ if name != "edited")

RESETTABLE: Final = (*CHANGEABLE, "shards")
"""What `reset` can return to the values in code: also the number set by `reshard`."""

_FIXED: Final[Mapping[str, str]] = {
    "order": "waiting jobs already have their order; declare it in code",
    "shards": "use queue.reshard() or `faena reshard`",
    "concurrency": "each worker process has its own; set it in code or for a pool",
    "objective": "programs read it from their code; set it there",
    "timeout": "it is read by the process that runs the job; set it in code",
    "priority": "jobs get it when they are enqueued; set it in code, or change single jobs",
    "retry": "it is read by the process that runs the job; set it in code",
    "payload_limit": "it is checked by the program that enqueues; set it in code",
    "alerts": "they are judged by the bounds of the program's workers; set them in code",
}


def check_changeable(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names if these options can be changed while a queue runs; else raise with the
    reason."""
    for name in names:
        if as_text(name) in _FIXED:
            raise ConfigError(
                f"{name} cannot be changed while the queue runs: {_FIXED[name]}", field=name
            )
        if name not in CHANGEABLE:
            raise unknown_name("setting", name, CHANGEABLE)
    return tuple(names)


def check_resettable(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names if these options can be reset."""
    check_changeable([name for name in names if name not in RESETTABLE])
    return tuple(names)


def changed(options: QueueOptions, changes: Mapping[str, Any]) -> QueueOptions:
    """A queue's options with some changed, checked as if declared in code."""
    check_changeable(tuple(changes))
    if changes.get("fair", "jobs") is None or changes.get("fair") is False:
        raise ConfigError(
            f"fair must be 'jobs' or 'time' while the queue runs, got {shown(changes['fair'])}: "
            f"only code decides whether tenants have lanes",
            field="fair",
            value=changes["fair"],
        )
    stacks = {name: () for name in _STACKS if changes.get(name, ()) is None}
    return replace(options, **{**changes, **stacks})


_STACKS: Final = ("limits", "tenant_limits", "key_limits")

OF_TENANTS: Final = frozenset({"tenant_limits", "tenant_max_running", "fair"})
"""Settings that need a queue with lanes."""


_LIMIT: Final = re.compile(r"([^\s,]+)(?:\s+of\s+([^\s,]+))?")

# -- from strings -------------------------------------------------------------------------------


def parse_setting(name: str, text: str) -> Any:
    """Read a value from a string, for command lines and forms; "none" means None.

        max_running 50 · lease 60s · learning yes · on_failure pass
        limits "10/s, 5000/min of tokens"
        backpressure "soft=100 hard=500 max_delay=5s" · retain "completed=24h dead_count=5000"

    Omitted parts of `backpressure` and `retain` have their defaults. `configure` checks the value.
    """
    check_changeable([name])
    if text.strip().lower() == "none":
        return None
    return _PARSERS.get(name, str)(text)


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _stack(text: str) -> list[Limit]:
    """Limits in the form they are shown: `10/s, 5000/min of tokens`."""
    return [Limit(rate, cost=unit or None) for rate, unit in _LIMIT.findall(text)]


def _number(text: str) -> int | str:
    """A whole number; `configure` refuses anything else, with the option's name."""
    number = read_whole(text.replace("_", ""))
    return number if isinstance(number, int) else text


def _switch(text: str) -> bool:
    words = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
    if text.strip().lower() not in words:
        raise ConfigError(
            f"learning must be yes or no (or true, false, on, off), got {shown(text)}",
            field="learning",
            value=text,
        )
    return words[text.strip().lower()]


def _length(name: str) -> Callable[[str], str]:
    """A duration; the error does not mention timedelta, which a command line cannot give."""

    def parse(text: str) -> str:
        try:
            to_us(name, text)
        except ConfigError:
            raise ConfigError(
                f"{name} must be a duration such as 90s, 5m or 1h30m, got {shown(text)}",
                field=name,
                value=text,
            ) from None
        return text

    return parse


def _parts(cls: type[Backpressure | Retain]) -> Callable[[str], Any]:
    durations = {one.name for one in fields(cls) if "Duration" in str(one.type)}

    def parse(text: str) -> Any:
        given: dict[str, Any] = {}
        for word in _words(text):
            name, _, value = word.partition("=")
            is_none = value.lower() == "none"
            given[name] = None if is_none else value if name in durations else _number(value)
        return build(cls, cls.__name__.lower(), given)

    return parse


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(_STACKS, _stack),
    "learning": _switch,
    "lease": _length("lease"),
    "age_step": _length("age_step"),
    "backpressure": _parts(Backpressure),
    "retain": _parts(Retain),
    **dict.fromkeys(
        ("max_running", "tenant_max_running", "max_deliveries", "retry_boost", "events_kept"),
        _number,
    ),
}
