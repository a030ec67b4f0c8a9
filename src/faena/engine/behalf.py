"""Who asks for what is done: the scripts of operators tell it with the event."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from faena.values.names import check_label

_asking: ContextVar[str] = ContextVar("faena_by", default="")


@contextmanager
def on_behalf(by: str | None) -> Generator[None]:
    """Let what operators' scripts do inside be told with this name; None leaves it as it is."""
    if by is None:
        yield
        return
    token = _asking.set(check_label("by", by))
    try:
        yield
    finally:
        _asking.reset(token)


def asking() -> str:
    """Who asks here; empty when nobody said."""
    return _asking.get()
