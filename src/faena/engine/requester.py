"""Who asks for what is done: the scripts of operators tell it with the event."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from faena.values.names import check_label

_requester: ContextVar[str] = ContextVar("faena_by", default="")


@contextmanager
def on_behalf(by: str | None) -> Generator[None]:
    """Let what operators' scripts do inside be told with this name; None leaves it as it is."""
    if by is None:
        yield
        return
    token = _requester.set(check_label("by", by))
    try:
        yield
    finally:
        _requester.reset(token)


def requester() -> str:
    """Who asks here; empty when nobody said."""
    return _requester.get()
