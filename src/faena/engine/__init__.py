"""The only package that speaks to the broker."""

from faena.engine.address import Address
from faena.engine.engine import Engine
from faena.engine.wire import Wire

__all__ = ["Address", "Engine", "Wire"]
