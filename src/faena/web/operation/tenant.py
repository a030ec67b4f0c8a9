"""What can be done to one tenant, in one queue, in some, or in all that have lanes for tenants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from faena.errors import ConfigError, FaenaError, shown
from faena.limits import Limit
from faena.queue import Queue
from faena.tenancy.tenants import SETTINGS, Tenant, TenantView
from faena.web.access.role import Permission
from faena.web.answer import Refusal, not_found
from faena.web.audit import Record
from faena.web.operation.operation import Asked, Done, Operation, Undo

AS_QUEUE: Final = "queue"
"""The value of a setting that returns it to the queue's."""
NO_LIMITS: Final = "none"
MOST_CANCELLED: Final = 500
"""Jobs of one queue that one call cancels."""
_AT_ONCE: Final = 8
_WAIT: Final = "5s"


class Where(msgspec.Struct, forbid_unknown_fields=True):
    """In which queues."""

    queue: str | list[str] | None = None
    """One, or several; none: all that have lanes for tenants."""


class Hold(Where, forbid_unknown_fields=True):
    """Why a tenant is held, and how long."""

    reason: str = "operator"
    lasting: str | None = None
    """A duration such as 5m; none: until it is released."""


class Override(Where, forbid_unknown_fields=True):
    """Settings of one tenant. What is left out stays; `queue` returns to the queue's."""

    limits: str | None = None
    """Such as `5/s, 100/min`; `none`: no limits."""
    max_running: str | None = None
    weight: str | None = None
    size: str | None = None
    lasting: str | None = None
    """A duration such as 1h, after which all of them end; none: until they are changed."""


class One(msgspec.Struct, forbid_unknown_fields=True):
    """In which queue."""

    queue: str


def queues_of(asked: Asked) -> list[Queue]:
    """The queues that are meant; all are known before anything is changed."""
    named = asked.given.queue
    names = [named] if isinstance(named, str) else named
    if names is None:
        return [one for one in asked.app.queues.values() if one.options.is_fair]
    missing = [name for name in names if name not in asked.app.queues]
    if missing or not names:
        raise not_found(f"queue {', '.join(missing)}" if missing else "queue")
    return [asked.app.queues[name] for name in dict.fromkeys(names)]


async def _each(
    asked: Asked,
    shown: Callable[[TenantView], Any],
    do: Callable[[Tenant], Awaitable[TenantView]],
) -> Done:
    """Do it in every queue; a queue in which it fails does not keep it from the others."""
    tenants = {one.name: one.tenant(asked.where["tenant"]) for one in queues_of(asked)}
    views = await asyncio.gather(*(one.view() for one in tenants.values()))
    before = {name: shown(view) for name, view in zip(tenants, views, strict=True)}
    after: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name, tenant in tenants.items():
        try:
            after[name] = shown(await do(tenant))
        except ConfigError:  # what was asked for is wrong, for each queue
            raise
        except FaenaError as error:
            failed[name] = str(error)
    if failed and not after:
        raise Refusal(409, "refused", "; ".join(f"{one}: {why}" for one, why in failed.items()))
    answer = {"queues": after, **({"failed": failed} if failed else {})}
    return Done(answer, before, {**after, **failed})


def _hold_of(view: TenantView) -> dict[str, Any] | None:
    return {"reason": view.reason, "until": view.held_until or None} if view.is_held else None


def _settings_of(view: TenantView) -> dict[str, Any]:
    """What is decided, as `Override` reads it."""
    limits = view.limits
    said = {
        "limits": AS_QUEUE if limits is None else ", ".join(map(str, limits)) or NO_LIMITS,
        **{
            name: AS_QUEUE if value is None else f"{value:g}"
            for name, value in (
                ("max_running", view.max_running),
                ("weight", view.weight),
                ("size", view.size),
            )
        },
    }
    return said | ({"ends_at": view.ends_at} if view.ends_at else {})


async def _hold(asked: Asked) -> Done:
    given: Hold = asked.given

    async def hold(tenant: Tenant) -> TenantView:
        return await tenant.hold(given.reason, lasting=given.lasting, by=asked.by)

    return await _each(asked, _hold_of, hold)


async def _release(asked: Asked) -> Done:
    return await _each(asked, _hold_of, lambda tenant: tenant.release(by=asked.by))


async def _reset(asked: Asked) -> Done:
    def shown(view: TenantView) -> dict[str, Any]:
        return {**_settings_of(view), "hold": _hold_of(view)}

    return await _each(asked, shown, lambda tenant: tenant.reset(by=asked.by))


async def _configure(asked: Asked) -> Done:
    given: Override = asked.given
    named = {name: getattr(given, name) for name in SETTINGS}
    settings: Any = {name: _read(name, text) for name, text in named.items() if text is not None}

    async def configure(tenant: Tenant) -> TenantView:
        return await tenant.configure(lasting=given.lasting, by=asked.by, **settings)

    return await _each(asked, _settings_of, configure)


def _read(name: str, text: str) -> Any:
    """A setting of a form or a call; the library checks the value."""
    said = text.strip()
    if said == AS_QUEUE:
        return None
    if name == "limits":
        return [] if said == NO_LIMITS else [Limit(one.strip()) for one in said.split(",")]
    try:
        return float(said) if name == "weight" else int(said)
    except ValueError:
        words = f"{name} must be a number, or `{AS_QUEUE}`, got {shown(said)}"
        raise Refusal(422, "invalid", words) from None


async def _dedicate(asked: Asked) -> Done:
    return await _each(asked, _where, lambda one: one.dedicate(by=asked.by, wait=_WAIT))


async def _rejoin(asked: Asked) -> Done:
    return await _each(asked, _where, lambda one: one.rejoin(by=asked.by, wait=_WAIT))


def _where(view: TenantView) -> str:
    return f"{'its own' if view.is_dedicated else 'shared'}{', moving' if view.is_moving else ''}"


async def _cancel(asked: Asked) -> Done:
    """Cancel what is ready; each job that starts or ends meanwhile is left as it is."""
    name, before, cancelled = asked.where["tenant"], 0, 0
    for queue in queues_of(asked):
        tenant = queue.tenant(name)
        jobs = (await tenant.ready(limit=MOST_CANCELLED)).jobs
        before += len(jobs)
        for start in range(0, len(jobs), _AT_ONCE):
            some = [queue.handle(one.id, tenant=name) for one in jobs[start : start + _AT_ONCE]]
            told = await asyncio.gather(
                *(one.cancel(by=asked.by) for one in some), return_exceptions=True
            )
            for one in told:
                if isinstance(one, BaseException) and not isinstance(one, FaenaError):
                    raise one
            cancelled += sum(isinstance(one, str) for one in told)
    return Done({"cancelled": cancelled}, {"ready": before}, {"cancelled": cancelled})


# -- undoing ---------------------------------------------------------------------------------------


def _alike(record: Record) -> tuple[list[str], Any] | None:
    """The queues of a change and what was there before; None where that differed."""
    before: Any = record.before
    if not isinstance(before, dict) or not before or "left out" in before:
        return None
    states = [*before.values()]
    return ([*before], states[0]) if all(one == states[0] for one in states) else None


def _undo_hold(record: Record) -> Undo | None:
    found = _alike(record)
    return _held_as(record, *found) if found else None


def _held_as(record: Record, queues: list[str], hold: Mapping[str, Any] | None) -> Undo | None:
    fields: dict[str, Any] = {"tenant": record.where["tenant"], "queue": queues}
    if hold is None:
        return Undo("tenants.release", fields)
    lasting = _left(hold.get("until"))
    if lasting == "":
        return None
    fields |= {"reason": hold["reason"] or "operator", "lasting": lasting}
    return Undo("tenants.hold", fields)


def _undo_settings(record: Record) -> Undo | None:
    found = _alike(record)
    if found is None:
        return None
    queues, before = found
    lasting = _left(before.get("ends_at"))
    if lasting == "":
        return None
    settings = {name: before[name] for name in SETTINGS if name in before}
    fields = {"tenant": record.where["tenant"], "queue": queues, **settings, "lasting": lasting}
    return Undo("tenants.configure", fields)


def _left(until: Any) -> str | None:
    """What is left of a time; None: it has no end; empty: it is over."""
    if not until:
        return None
    left_s = int(until / 1e6 - time.time())
    return f"{left_s}s" if left_s > 0 else ""


def _undo_move(operation: str) -> Callable[[Record], Undo | None]:
    def undo(record: Record) -> Undo | None:
        fields = {"tenant": record.where["tenant"], "queue": str(record.arguments.get("queue", ""))}
        return Undo(operation, fields) if record.before != record.after else None

    return undo


def _operation(
    name: str,
    text: str,
    told: str,
    do: Any,
    arguments: Any,
    *,
    needs: Permission = Permission.OPERATE,
    **more: Any,
) -> Operation:
    return Operation(
        name=f"tenants.{name}",
        path=f"/tenants/{{tenant}}/{name}",
        text=text,
        told=told,
        arguments=arguments,
        do=do,
        needs=needs,
        **more,
    )


OPERATIONS: Final = (
    _operation(
        "hold",
        "Start no more jobs of a tenant; running ones go on.",
        "{tenant} is held: {reason}",
        _hold,
        Hold,
        undo=_undo_hold,
    ),
    _operation(
        "release",
        "End the hold of a tenant.",
        "{tenant} is released",
        _release,
        Where,
        undo=_undo_hold,
    ),
    _operation(
        "configure",
        "Change the weight and the limits of a tenant.",
        "The settings of {tenant} are changed",
        _configure,
        Override,
        needs=Permission.ADMINISTER,
        undo=_undo_settings,
    ),
    _operation(
        "reset",
        "Remove the settings and the hold of a tenant.",
        "{tenant} has the settings of its queues again",
        _reset,
        Where,
        needs=Permission.ADMINISTER,
    ),
    _operation(
        "dedicate",
        "Give a tenant a shard of its own.",
        "{tenant} gets a shard of its own",
        _dedicate,
        One,
        needs=Permission.ADMINISTER,
        undo=_undo_move("tenants.rejoin"),
    ),
    _operation(
        "rejoin",
        "Return a tenant to the shards that it shares with others.",
        "{tenant} returns to the shared shards",
        _rejoin,
        One,
        needs=Permission.ADMINISTER,
        undo=_undo_move("tenants.dedicate"),
    ),
    _operation(
        "cancel-ready",
        f"Cancel the ready jobs of a tenant, at most {MOST_CANCELLED} of each queue.",
        "Ready jobs of {tenant} are cancelled",
        _cancel,
        Where,
    ),
)
