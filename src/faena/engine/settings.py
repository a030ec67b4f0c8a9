"""Translates queue options to the settings that scripts read from `conf`, and back."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from faena.engine.scripts import texts
from faena.errors import ConfigError, NotDeclared, shown
from faena.limits import Limit
from faena.options import Backpressure, Order, QueueOptions, Retain
from faena.options.costs import estimates_text, read_costs
from faena.options.settings import Settings
from faena.values.duration import describe

_log = logging.getLogger("faena.queue")

_RETAINED: Final = tuple(
    f"{state}_{bound}"
    for state in ("completed", "dead", "cancelled")
    for bound in ("us", "count", "bytes")
)
_PRESSED: Final = ("soft", "hard", "tenant_soft", "tenant_hard", "max_delay_us")

WRITTEN: Final[Mapping[str, tuple[str, ...]]] = {
    "limits": ("limits", "costs"),
    "tenant_limits": ("tenant_limits", "tenant_costs"),
    "key_limits": ("key_limits",),
    "learning": ("learn",),
    "max_running": ("max_running",),
    "tenant_max_running": ("tenant_max_running",),
    "fair": ("fair_time",),
    "on_failure": ("pass",),
    "backpressure": _PRESSED,
    "retain": _RETAINED,
    "lease": ("lease_us",),
    "max_deliveries": ("max_deliveries",),
    "age_step": ("age_step_us",),
    "retry_boost": ("retry_boost",),
    "events_kept": ("events_kept",),
}
"""Options that can be changed at run time, and the settings that each is written as."""

PLACING: Final = ("order", "lanes", "priority", "payload_limit", "keyed", "costs", "tenant_costs")
"""Settings that are read by programs that only produce."""

COST_OF: Final = "cost:"
"""The prefix of settings with the estimated costs of a task's jobs."""


HISTORY_OF: Final = "history:"
"""The prefix of settings of a queue's history: `room` for it in bytes, whether with `payloads`."""

UNSERVED: Final[Mapping[str, str]] = {"unserved": "1"}
"""Added by a program that may lack the handlers; the first that claims declares the rest."""

SERVED: Final[Mapping[str, str]] = {"unserved": ""}


def declaration(options: QueueOptions) -> dict[str, str]:
    """Every setting by name, empty if the options set no bound.

    Includes a version of the settings that all programs which declare the queue must share.
    """
    press, retain = options.backpressure, options.retain
    values: dict[str, object] = {
        "limits": limits_text(options.limits),
        "tenant_limits": limits_text(options.tenant_limits),
        "costs": costs_text(options.limits),
        "tenant_costs": costs_text(options.tenant_limits),
        "key_limits": limits_text(options.key_limits),
        "keyed": limits_text(options.key_limits),  # jobs have their keys, whatever is edited
        "tenant_max_running": options.tenant_max_running,
        "fifo": 1 if options.order is not Order.NONE else None,
        "fair_time": 1 if options.fair == "time" else None,
        "learn": 1 if options.learning else None,
        "pass": 1 if options.on_failure == "pass" else None,
        "max_running": options.max_running,
        "lease_us": options.lease_us,
        "max_deliveries": options.max_deliveries,
        "age_step_us": options.age_step_us,
        "retry_boost": options.retry_boost,
        "events_kept": options.events_kept,
        "order": options.order.value,
        "lanes": 2 if options.is_laned else 1 if options.is_fair else None,
        "priority": int(options.priority),
        "payload_limit": options.payload_limit,
    }
    values |= {name: press and getattr(press, name) for name in _PRESSED}
    values |= {name: getattr(retain, name) for name in _RETAINED}
    texts = {name: "" if value is None else str(value) for name, value in values.items()}
    digest = hashlib.blake2b(repr(sorted(texts.items())).encode(), digest_size=8)
    return texts | _of_tasks(options) | {"version": digest.hexdigest()}


def as_declared(options: QueueOptions, edits: Mapping[str, str]) -> dict[str, str]:
    """The settings after a declaration of the queue; edited ones are kept."""
    edited = edits.get("edited", "").split()
    declared = declaration(options).items()
    return {name: text for name, text in declared if text and name not in edited} | dict(edits)


def _of_tasks(options: QueueOptions) -> dict[str, str]:
    """Settings that only a program with the tasks knows; others are left unchanged."""
    hooks = {f"hook_{end}:{task}": hook for (end, task), hook in options.hooks.items()}
    costs = {f"{COST_OF}{task}": estimates_text(cost) for task, cost in options.costs.items()}
    history = {f"{HISTORY_OF}{name}": str(one or "") for name, one in options.history.items()}
    return hooks | costs | history


def placing_of(
    queue: str, fields: Sequence[bytes | None], tasks: Sequence[str] = ()
) -> QueueOptions:
    """Read the settings of PLACING, and the estimated costs of `tasks` after them, as options."""
    texts = [None if one is None else one.decode() for one in fields]
    order, lanes, priority, limit, keyed, *costs = texts[: len(PLACING)]
    if order is None or priority is None or limit is None:
        raise NotDeclared(queue)
    options = QueueOptions(
        order=Order.of(order),
        fair={"2": True, "1": None}.get(lanes or "", False),
        priority=int(priority),
        payload_limit=int(limit),
        key_limits=_limits({"keyed": keyed or ""}, "keyed"),
        limits=_least(_limits({"costs": " ".join(one or "" for one in costs)}, "costs")),
    )
    estimates = zip(tasks, texts[len(PLACING) :], strict=True)
    options.costs.update({task: read_costs(text) for task, text in estimates if text})
    return options


def _least(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """The smallest limit by cost of each unit, which bounds an estimate."""
    largest_first = sorted(limits, key=lambda one: -one.max)
    return tuple({one.cost: one for one in largest_first}.values())


def written(options: QueueOptions, names: Iterable[str]) -> dict[str, str]:
    """Some of a queue's options as settings, for an edit."""
    settings = declaration(options)
    return {one: settings[one] for name in names for one in WRITTEN[name]}


def read_settings(conf: Mapping[str, str], *, is_fair: bool) -> Settings:
    """Read `conf` as options."""
    edited = set(conf.get("edited", "").split())
    by = "time" if conf.get("fair_time") else "jobs"
    return Settings(
        limits=_limits(conf, *WRITTEN["limits"]),
        tenant_limits=_limits(conf, *WRITTEN["tenant_limits"]),
        key_limits=_limits(conf, *WRITTEN["key_limits"]),
        learning="learn" in conf,
        max_running=_number(conf, "max_running"),
        tenant_max_running=_number(conf, "tenant_max_running"),
        fair=by if is_fair else False,
        on_failure="pass" if "pass" in conf else "block",
        backpressure=_backpressure(conf),
        retain=_retain(conf),
        lease=_duration(conf["lease_us"]),
        max_deliveries=int(conf["max_deliveries"]),
        age_step=_duration(conf["age_step_us"]),
        retry_boost=int(conf["retry_boost"]),
        events_kept=int(conf.get("events_kept", 0)),
        edited=tuple(name for name, parts in WRITTEN.items() if edited & set(parts)),
    )


def _backpressure(conf: Mapping[str, str]) -> Backpressure | None:
    """Earlier versions could edit each bound alone, so a soft one may not be below the hard one."""
    soft, hard, tenant_soft, tenant_hard, _ = (_number(conf, name) for name in _PRESSED)
    if soft is None and hard is None and tenant_soft is None and tenant_hard is None:
        return None
    return Backpressure(
        soft=_below(soft, hard),
        hard=hard,
        tenant_soft=_below(tenant_soft, tenant_hard),
        tenant_hard=tenant_hard,
        max_delay=_duration(conf.get("max_delay_us", "0")),
    )


def _below(soft: int | None, hard: int | None) -> int | None:
    return soft if soft is None or hard is None else min(soft, hard - 1)


def _retain(conf: Mapping[str, str]) -> Retain:
    bounds: dict[str, Any] = {}
    for state in ("completed", "dead", "cancelled"):
        age = conf.get(f"{state}_us")
        bounds[state] = None if age is None else _duration(age)
        for unit in ("count", "bytes"):
            bounds[f"{state}_{unit}"] = _number(conf, f"{state}_{unit}")
        if bounds[state] is None and bounds[f"{state}_count"] is bounds[f"{state}_bytes"] is None:
            bounds[f"{state}_count"] = 10**12  # as an earlier version could edit it
    return Retain(**bounds)


def _number(conf: Mapping[str, str], name: str) -> int | None:
    return int(conf[name]) if name in conf else None


def _duration(us: str) -> str:
    return describe(int(us)).replace(" ", "")


def _limits(conf: Mapping[str, str], *names: str) -> tuple[Limit, ...]:
    return tuple(limit for name in names for limit in read_limits(conf.get(name, "")))


_SAID: Final = {one: name for name, parts in WRITTEN.items() for one in parts if len(parts) == 1}


def check_accepted(reply: Sequence[bytes], settings: Mapping[str, str]) -> None:
    """Raise ConfigError if a script refused settings."""
    if reply[0] == b"INVALID":
        name = reply[1].decode()
        if name == "costs":
            raise ConfigError(
                "limits of the queue must not be by cost if it has several shards",
                field="limits",
                value=settings[name],
            )
        if name == "key_limits":
            raise ConfigError(
                f"key_limits must be limits on claims, and None if the queue has several shards, "
                f"got {shown(settings[name])}",
                field="key_limits",
                value=settings[name],
            )
        raise ConfigError(
            f"{_SAID.get(name, name)} must be a valid setting, with at least one for each shard, "
            f"got {shown(settings[name])}",
            field=_SAID.get(name, name),
            value=settings[name],
        )
    if reply[0] == b"CONTRADICTS":
        low, soft, high, hard = texts(reply[1:])
        field = low if low in settings else high
        raise ConfigError(
            f"{low} must be less than {high}, got {low} {soft} and {high} {hard}; "
            f"change both in one call, or set one of them to None",
            field=field,
            value=settings[field],
        )


_MEANT: Final = {part: name for name, parts in WRITTEN.items() for part in parts} | {
    "fifo": "order",
    "lanes": "fair",
    "keyed": "key_limits",
}


def accept_declared(
    queue: str, reply: Sequence[bytes], settings: Mapping[str, str], *, warns: bool = True
) -> None:
    """Raise if a declaration was refused, and log options that were declared differently before.

    If two programs declare the same queue, the last to connect wins.
    """
    check_accepted(reply, settings)
    if warns and len(reply) > 1 and reply[-2] == b"differed" and "/" not in queue:
        names = dict.fromkeys(_MEANT.get(one, one) for one in reply[-1].decode().split())
        _log.warning(
            "queue %s was declared with different options before (%s), by earlier code or by "
            "another program; those of this program apply now. Declare a queue in one program, and "
            "use app.remote_queue in the others",
            queue,
            ", ".join(names),
        )


def read_limits(text: str) -> tuple[Limit, ...]:
    """Read limits written by `limits_text` or `costs_text`."""
    parts = (part.split("/") for part in text.split())
    return tuple(
        Limit(max=int(most), per=timedelta(microseconds=int(us)), cost=unit[0] if unit else None)
        for most, us, *unit in parts
    )


def limits_text(limits: Iterable[Limit]) -> str:
    """Limits on claims as the scripts read them: `max/window_us`, separated by spaces."""
    return " ".join(f"{one.max}/{one.per_us}" for one in limits if one.cost is None)


def costs_text(limits: Iterable[Limit]) -> str:
    """Limits by cost as the scripts read them: `max/window_us/unit`, separated by spaces."""
    return " ".join(f"{one.max}/{one.per_us}/{one.cost}" for one in limits if one.cost is not None)
