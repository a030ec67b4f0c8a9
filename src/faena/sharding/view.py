"""The shards of a queue, to look at and to change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from faena.errors import InvalidTransition
from faena.sharding.quota import check_divisible
from faena.sharding.table import Change
from faena.values.names import check_label
from faena.values.view import View

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime


class ShardsView(View, frozen=True, kw_only=True):
    """Where a queue lives."""

    also = ("is_moving",)

    queue: str
    shards: int
    dedicated: tuple[str, ...]
    """Tenants that have a shard of their own; "" stands for the jobs without a tenant."""
    jobs: dict[str, int]
    """Live jobs by shard; the shards that are being left too."""
    change: str | None
    """What is under way: `4 shards`, `own shard for tenant acme` or `shared shard for …`."""
    is_edited: bool = False
    """Whether the number was set by `reshard`: code decides it again after `reset("shards")`."""

    @property
    def is_moving(self) -> bool:
        """Whether jobs are still on their way."""
        return self.change is not None


async def view_shards(runtime: Runtime, queue: str) -> ShardsView:
    """How the shards of a queue stand."""
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
    """Change the number of shards, in `wait_s` or in the background."""
    check_label("by", by)
    router, until = runtime.routers.of(queue), time.monotonic() + wait_s
    await router.settled(wait_s)
    check_divisible((await runtime.inspector.overview(queue)).settings, shards)
    await _check_empty(runtime, queue, shards)
    await router.change(Change(shards=shards), by, until - time.monotonic())
    await router.settled(until - time.monotonic())
    return await view_shards(runtime, queue)


async def reset_shards(runtime: Runtime, queue: str, names: Sequence[str]) -> None:
    """Let code decide the number of shards again, if that is among what is reset.

    The queue has them when the next program has begun to enqueue or to serve.
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
                f"queue {queue} must keep its {table.shards} shards while jobs are live in those "
                f"to be retired: {shard.name} has {live}; pause producers until they have run",
                op="reshard",
            )
