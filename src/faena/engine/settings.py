"""Queue options as the settings the scripts read from `conf`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from faena.engine.scripts import texts
from faena.errors import ConfigError, nearest
from faena.limits import Limit
from faena.number import check_whole
from faena.options import Order, QueueOptions

EVENTS_KEPT = 500

NAMES = (
    "limits",
    "tenant_limits",
    "tenant_max_running",
    "fifo",
    "fair_time",
    "learn",
    "pass",
    "max_running",
    "lease_us",
    "max_deliveries",
    "age_step_us",
    "retry_boost",
    "soft",
    "hard",
    "tenant_soft",
    "tenant_hard",
    "max_delay_us",
    "completed_us",
    "completed_count",
    "completed_bytes",
    "dead_us",
    "dead_count",
    "dead_bytes",
    "cancelled_us",
    "cancelled_count",
    "cancelled_bytes",
    "events_kept",
)


NUMBERS = tuple(name for name in NAMES if name not in {"limits", "tenant_limits", "fifo"})

_SWITCHES = ("fair_time", "learn", "pass")

_LEAST = {
    "max_running": 1,
    "lease_us": 100_000,
    "max_deliveries": 1,
    "age_step_us": 1_000,
    "hard": 1,
    "tenant_hard": 1,
    "tenant_max_running": 1,
}
_MOST = 10**15
_NEEDED = ("lease_us", "max_deliveries", "age_step_us", "retry_boost", "events_kept")


def declaration(options: QueueOptions) -> dict[str, str]:
    """Every setting by name, empty where the options set no bound, and a version of them all."""
    press, retain = options.backpressure, options.retain
    values: dict[str, object] = {
        "limits": limits_text(options.limits),
        "tenant_limits": limits_text(options.tenant_limits),
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
        "soft": press and press.soft,
        "hard": press and press.hard,
        "tenant_soft": press and press.tenant_soft,
        "tenant_hard": press and press.tenant_hard,
        "max_delay_us": press and press.max_delay_us,
        "events_kept": EVENTS_KEPT,
    }
    for state in ("completed", "dead", "cancelled"):
        for bound in ("us", "count", "bytes"):
            values[f"{state}_{bound}"] = getattr(retain, f"{state}_{bound}")
    texts = {name: "" if value is None else str(value) for name, value in values.items()}
    digest = hashlib.blake2b(repr(sorted(texts.items())).encode(), digest_size=8)
    return texts | {"version": digest.hexdigest()}


def setting_text(name: str, value: int | None) -> str:
    """A setting that is edited at run time, as the scripts read it; None removes a bound."""
    if name == "fifo":
        raise ConfigError(
            "fifo must stay as declared: it follows from the queue's order, which is code's to set",
            field=name,
            value=value,
        )
    if name not in NUMBERS:
        raise ConfigError(
            f"setting must be a known name, got {name!r}; {nearest(name, NUMBERS)}",
            field=name,
            value=value,
        )
    if name in _SWITCHES:
        # scripts ask whether it is there
        return "1" if check_whole(name, value or 0, least=0, most=1) else ""
    if value is None and name not in _NEEDED:
        return ""
    return str(check_whole(name, value, least=_LEAST.get(name, 0), most=_MOST))


def check_accepted(reply: Sequence[bytes], settings: Mapping[str, str]) -> None:
    """Raise what a script says against settings that it was given."""
    if reply[0] == b"INVALID":
        name = reply[1].decode()
        raise ConfigError(
            f"{name} must be a valid setting, and where the queue has shards leave each of them "
            f"at least one, got {settings[name]!r}",
            field=name,
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


def limits_text(limits: Iterable[Limit]) -> str:
    """Limits as the scripts read them: `max/window_us`, separated by spaces."""
    return " ".join(f"{limit.max}/{limit.per_us}" for limit in limits)
