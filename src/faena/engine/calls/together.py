"""The same read of many shards in few round trips: pages that show all queues are made of these.

One call for each of a hundred queues costs the program, and the server, more in sockets than in
scripts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from faena.engine.engine import Engine
from faena.engine.keys import Keys
from faena.engine.script_library import load
from faena.engine.wire.wire import Argument
from faena.errors import StoreError


async def ask_each(
    engine: Engine, script: str, shards: Sequence[str], /, **named: Argument | None
) -> list[Any]:
    """The answers of a script that only reads, with the same arguments, in order."""
    return await _run_each(engine, script, shards, named, engine.patience_s)


async def command_each(
    engine: Engine, verb: str, queues: Sequence[str], name: str, *args: Argument
) -> list[Any]:
    """The replies to one command that only reads one key of each queue, in order."""
    calls = [(Keys(engine.namespace, queue)(name), args) for queue in queues]
    return await engine.wire.call_each(verb, calls, patience_s=engine.patience_s)


async def take_in_each(engine: Engine, shards: Sequence[str]) -> None:
    """Store the jobs in `arrivals` of each, as `Engine.take_in` does; a failure is no matter."""
    with contextlib.suppress(StoreError):
        await _run_each(engine, "arrive", shards, {}, 0)


async def _run_each(
    engine: Engine,
    name: str,
    shards: Sequence[str],
    named: dict[str, Argument | None],
    patience_s: float,
) -> list[Any]:
    script = load(name)
    args = [engine.clock() if engine.clock else "", *script.args.arranged(name, (), named)]
    calls = [(Keys(engine.namespace, shard).prefix, args) for shard in shards]
    return await engine.wire.run_each(script, calls, patience_s=patience_s)
