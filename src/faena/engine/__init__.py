"""The only package that speaks to the broker."""

from faena.engine.engine import Engine
from faena.engine.wire.address import Address
from faena.engine.wire.wire import Wire

__all__ = ["Address", "Engine", "Wire"]
