"""Work that makes its next call only when it is let, and may be abandoned between any two."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import Any

from faena.engine import Wire
from faena.engine.wire.request import Argument, Key, Script
from faena.engine.wire.topology import Node


class GatedWire(Wire):
    """Every call waits at the gate until it is let through."""

    is_doubled = False
    """Whether the next script is sent again, as after a reply that was lost."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.at_gate = asyncio.Event()
        self._let: asyncio.Future[None] | None = None
        self.last = ""
        """What waits at the gate, or went through it last."""

    async def _pass(self, what: str) -> None:
        self._let = asyncio.get_running_loop().create_future()
        self.last = what
        self.at_gate.set()
        await self._let

    def let(self) -> None:
        """Let the call through that waits."""
        self.at_gate.clear()
        if self._let is not None:
            self._let.set_result(None)

    async def call(
        self,
        *command: Argument,
        key: Key | None = None,
        node: Node | None = None,
        patience_s: float = 0.0,
    ) -> Any:
        await self._pass(" ".join(map(str, command[:2])))
        return await super().call(*command, key=key, node=node, patience_s=patience_s)

    async def run(
        self,
        script: Script,
        keys: Sequence[Key],
        args: Sequence[Argument],
        *,
        patience_s: float,
        node: Node | None = None,
    ) -> Any:
        await self._pass(f"{script.name} {keys[0]!s} {list(args)[:6]}")
        is_doubled, self.is_doubled = self.is_doubled, False
        reply = await super().run(script, keys, args, patience_s=patience_s, node=node)
        if is_doubled:
            return await super().run(script, keys, args, patience_s=patience_s, node=node)
        return reply


class Stepped:
    """Work on such a wire, a call at a time."""

    def __init__(self, wire: GatedWire) -> None:
        self.wire = wire
        self._task: asyncio.Task[Any] | None = None

    async def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Have it come to its first call."""
        self.wire.at_gate.clear()
        self._task = asyncio.create_task(work)
        await self._rest()

    @property
    def is_done(self) -> bool:
        return self._task is not None and self._task.done()

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def next_call(self) -> str:
        """What it will do when it is let."""
        return self.wire.last

    async def step(self, *, is_doubled: bool = False) -> None:
        """Let it make one call, and think until it wants to make the next one."""
        self.wire.is_doubled = is_doubled
        self.wire.let()
        await self._rest()

    async def _rest(self) -> None:
        assert self._task is not None
        waits = asyncio.create_task(self.wire.at_gate.wait())
        await asyncio.wait({self._task, waits}, return_when=asyncio.FIRST_COMPLETED)
        waits.cancel()
        if self._task.done():
            self._task.result()

    async def finish(self) -> None:
        """All its calls, one after the other."""
        while self.is_busy:
            await self.step()

    async def abandon(self) -> None:
        """It is never heard of again."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
