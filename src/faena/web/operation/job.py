"""What can be done to one job."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from faena.producing.handle import Handle
from faena.web.access.role import Permission
from faena.web.answer import not_found
from faena.web.operation.operation import Asked, Done, Operation
from faena.web.operation.queue import queue_of


class Whose(msgspec.Struct, forbid_unknown_fields=True):
    """Which job is meant, where tenants have jobs of the same id."""

    tenant: str | None = None


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """When a waiting job runs, or how soon."""

    tenant: str | None = None
    delay: str | None = None
    """From now on, such as 5m; 0s: now."""
    priority: str | None = None
    """1 (soonest) to 100, or the name of a level."""


async def _found(asked: Asked) -> tuple[Handle[Any], str]:
    queue, name = queue_of(asked), asked.where["job"]
    handle: Handle[Any] = queue.handle(name, tenant=asked.given.tenant)
    state = await handle.state()
    if state is None:
        raise not_found(f"job {name} in {queue.name}")
    return handle, state.value


async def _after(handle: Handle[Any]) -> str:
    state = await handle.state()
    return state.value if state else "removed"


async def _cancel(asked: Asked) -> Done:
    handle, before = await _found(asked)
    told = await handle.cancel(by=asked.by)
    return Done({"outcome": told}, before, await _after(handle))


async def _rerun(asked: Asked) -> Done:
    handle, before = await _found(asked)
    await handle.rerun(by=asked.by)
    return Done({"outcome": "rerun"}, before, await _after(handle))


async def _promote(asked: Asked) -> Done:
    handle, before = await _found(asked)
    await handle.promote(by=asked.by)
    return Done({"outcome": "promoted"}, before, await _after(handle))


async def _remove(asked: Asked) -> Done:
    handle, before = await _found(asked)
    await handle.remove(by=asked.by)
    return Done({"outcome": "removed"}, before, await _after(handle))


async def _change(asked: Asked) -> Done:
    handle, before = await _found(asked)
    given: Change = asked.given
    named = given.priority
    priority = int(named) if named and named.isdecimal() else named
    await handle.change(delay=given.delay, priority=priority, by=asked.by)
    return Done({"outcome": "changed"}, before, await _after(handle))


def _operation(name: str, text: str, do: Any, needs: Permission, arguments: Any) -> Operation:
    return Operation(
        name=f"jobs.{name}",
        path=f"/queues/{{queue}}/jobs/{{job}}/{name}",
        needs=needs,
        text=text,
        arguments=arguments,
        do=do,
    )


OPERATIONS: Final = (
    _operation(
        "cancel", "Cancel a job, or ask a running one to stop.", _cancel, Permission.OPERATE, Whose
    ),
    _operation(
        "rerun", "Run a finished job again: the same job.", _rerun, Permission.OPERATE, Whose
    ),
    _operation("promote", "Make a delayed job ready now.", _promote, Permission.OPERATE, Whose),
    _operation(
        "change",
        "Change the delay or priority of a waiting job.",
        _change,
        Permission.OPERATE,
        Change,
    ),
    _operation("remove", "Remove a job for good.", _remove, Permission.ADMINISTER, Whose),
)
