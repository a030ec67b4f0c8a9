"""Schedules in the shortest words that tests of their scripts need."""

from __future__ import annotations

from typing import Any

from faena.engine.calls.scheduling import Change, Fired, Firing, fire, read, write
from faena.engine.envelope import seal
from tests._support.rig import T0, Rig

OLD, NEW = "0000000000000001", "0000000000000002"


def firing(instant: int = T0, *, job: str = "s@1", body: bytes = b"{}", **facts: object) -> Firing:
    """A job of the schedule `s`."""
    return Firing("s", instant, job, seal(10, facts, body))


async def plant(rig: Rig, due: int | None = T0, name: str = "s", version: str = OLD) -> None:
    """A schedule with a record that says nothing."""
    assert await write(rig.engine, rig.queue, name, Change("", version, b"{}", due))


async def shoot(
    rig: Rig, wanted: Firing, change: Change | None, *, epoch: int = 0, **more: Any
) -> Fired:
    return await fire(rig.engine, rig.queue, wanted, change, epoch=epoch, **more)


async def version_of(rig: Rig, name: str = "s") -> str | None:
    _, found = await read(rig.engine, rig.queue, [name])
    return found[name].version if found else None
