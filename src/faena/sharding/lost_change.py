"""Ends a change of shards that the broker has lost, with its other data, while it was announced.

The program that announces it tells each shard the next epoch, and freezes lanes. If the table is
lost meanwhile, and written again by a program that knows it without the change, nobody publishes
that epoch: shards would refuse the table for ever. The table then gets the epoch that they know.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial

import msgspec

from faena.engine import Engine
from faena.engine.calls.survey import Survey
from faena.engine.calls.transfer import TransferCalls
from faena.sharding.relocation import Relocation
from faena.sharding.routing_table import ANNOUNCED, standing


async def end_lost_change(engine: Engine, queue: str, relocation: Relocation) -> None:
    """Do nothing if the change is there, or somebody is at work on it. May be done again."""
    async with relocation.alone() as is_alone:
        table = await relocation.table()
        if not is_alone or table.phase == ANNOUNCED:
            return
        before = table.former()
        names = {shard.name: None for shard in (*before.all(queue), *table.all(queue))}
        epoch = max([await _epoch(engine, name) for name in names])
        if epoch <= table.epoch:
            return
        known = msgspec.structs.replace(before, epoch=epoch, is_edited=table.is_edited)
        transfer = TransferCalls(engine)
        for name in names:
            await transfer.steady(name, partial(_free_lanes, engine, name))
            await transfer.set_standing(name, standing(name, known))
        await relocation.restore(known)  # last, as nobody looks for more after it


async def _epoch(engine: Engine, shard: str) -> int:
    """That a shard knows; 0 if it has no settings."""
    return int(await engine.command("HGET", shard, "conf", "epoch") or 0)


async def _free_lanes(engine: Engine, shard: str) -> None:
    """Serve lanes that were frozen: their jobs have not moved."""
    transfer = TransferCalls(engine)
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    async for lanes in Survey(engine, shard).texts("moves"):
        for lane, why in lanes.items():
            way, _, epoch = why.partition(" ")
            found["stay" if way == "out" else "in", int(epoch)].append(lane)
    for (verb, epoch), lanes in found.items():
        await transfer.thaw(shard, verb, epoch, lanes)
