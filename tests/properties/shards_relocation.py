"""A relocation that makes its next call only when it is let."""

from __future__ import annotations

from collections.abc import Mapping

from faena.engine import Engine
from faena.sharding.relocation import Relocation
from tests._support.gated_wire import GatedWire, Stepped
from tests._support.rig import Clock


class Hired(Stepped):
    """One relocation at work."""

    def __init__(self, wire: GatedWire, namespace: str, clock: Clock) -> None:
        super().__init__(wire)
        self._engine = Engine(wire, namespace=namespace, clock=clock, patience_s=60)

    async def begin(self, queue: str, settings: Mapping[str, str]) -> None:
        """Have it come to its first call."""
        self._engine.know(queue, settings)
        await self.start(Relocation(self._engine, queue).work())
