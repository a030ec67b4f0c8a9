"""Who requests an operation; the scripts of operators record it in the event."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from faena.values.names import check_label

_requester: ContextVar[str] = ContextVar("faena_by", default="")


@contextmanager
def on_behalf(by: str | None) -> Generator[None]:
    """Record this name with operations inside the `with` block; None: keep the current name."""
    if by is None:
        yield
        return
    token = _requester.set(check_label("by", by))
    try:
        yield
    finally:
        _requester.reset(token)


def requester() -> str:
    """The current name; empty if there is none."""
    return _requester.get()
