"""A wire that loses replies, doubles requests and delivers old ones late.

Each fault is one a network really shows to a caller that sends again after a timeout:

    lost      the request was carried out, its reply was lost, and the same request is sent again
    doubled   the request arrives twice; the caller hears the first answer
    kept      a copy of the request stays on the way and arrives when `deliver` is called
    vanished  the request was carried out and the caller gave up without an answer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from faena.engine import Wire
from faena.engine.wire.request import Argument, Key, Script
from faena.errors import StoreUnavailable

Fault = Literal["none", "lost", "doubled", "kept", "vanished"]


@dataclass
class Copy:
    """A request that is still on its way."""

    script: Script
    keys: Sequence[Key]
    args: Sequence[Argument]


class FaultyWire(Wire):
    """Does to the next script what `fault` says."""

    fault: Fault = "none"
    copy: Copy | None = None
    """The request kept last."""

    async def run(
        self,
        script: Script,
        keys: Sequence[Key],
        args: Sequence[Argument],
        *,
        patience_s: float,
    ) -> Any:
        fault, self.fault = self.fault, "none"
        reply = await super().run(script, keys, args, patience_s=patience_s)
        match fault:
            case "lost":
                return await super().run(script, keys, args, patience_s=patience_s)
            case "doubled":
                await super().run(script, keys, args, patience_s=patience_s)
            case "kept":
                self.copy = Copy(script, keys, args)
            case "vanished":
                raise StoreUnavailable("the reply was lost", op=script.name)
        return reply

    async def deliver(self, copy: Copy, now: int) -> Any:
        """Let a late copy arrive; the server then reads its own clock, which is `now`."""
        return await super().run(copy.script, copy.keys, [now, *copy.args[1:]], patience_s=60)
