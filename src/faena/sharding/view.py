"""Reads and changes the shards of a queue."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from faena.errors import InvalidTransition
from faena.sharding.quota import check_divisible
from faena.sharding.routing_table import Change
from faena.values.names import check_label
from faena.values.view import View

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime


class ShardsView(View, frozen=True, kw_only=True):
    """The shards of a queue."""

    also = ("is_moving",)

    queue: str
    shards: int
    dedicated: tuple[str, ...]
    """Tenants that have a shard of their own; "" stands for the jobs without a tenant."""
    jobs: dict[str, int]
    """Live jobs by shard, including shards that lanes are leaving."""
    change: str | None
    """The running change: `4 shards`, `own shard for tenant acme` or `shared shard for …`."""
    is_edited: bool = False
    """Whether `reshard` set the number; `reset("shards")` returns to the number in code."""

    @property
    def is_moving(self) -> bool:
        """Whether jobs are still moving."""
        return self.change is not None


async def view_shards(runtime: Runtime, queue: str) -> ShardsView:
    """Read the shards of a queue."""
    router = runtime.routers.of(queue)
    table = await router.look()
    return ShardsView(
        queue=queue,
        shards=table.shards,
        dedicated=table.dedicated,
        jobs={name: (await runtime.engine.overview(name)).live for name in await router.names()},
        change=table.change.words or None,
        is_edited=table.is_edited,
    )


async def reshard(
    runtime: Runtime, queue: str, shards: int, *, by: str, wait_s: float
) -> ShardsView:
    """Change the number of shards; wait for `wait_s`, then continue in the background."""
    check_label("by", by)
    router, until = runtime.routers.of(queue), time.monotonic() + wait_s
    await router.settled(wait_s)
    check_divisible((await runtime.inspector.overview(queue)).settings, shards)
    await _check_empty(runtime, queue, shards)
    await router.change(Change(shards=shards), by, until - time.monotonic())
    await router.settled(until - time.monotonic())
    return await view_shards(runtime, queue)


async def reset_shards(runtime: Runtime, queue: str, names: Sequence[str]) -> None:
    """Use the number of shards in code again, if `shards` is among `names`.

    It applies when the next program starts to enqueue or to serve.
    """
    if "shards" in names:
        await runtime.routers.of(queue).relocation.reset()


async def _check_empty(runtime: Runtime, queue: str, shards: int) -> None:
    """Refuse to retire a shard in which jobs wait or run."""
    table = await runtime.routers.of(queue).look()
    for shard in table.all(queue)[shards : table.shards]:
        live = (await runtime.engine.overview(shard.name)).live
        if live:
            raise InvalidTransition(
                f"queue {queue} must keep its {table.shards} shards while those to be retired have "
                f"live jobs: {shard.name} has {live}; pause producers until they have run",
                op="reshard",
            )
