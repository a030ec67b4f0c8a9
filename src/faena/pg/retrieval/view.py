"""A request as its tenant sees it."""

from __future__ import annotations

from datetime import datetime

from faena.pg.retrieval.record import State
from faena.values.view import View


class RetrievalView(View, frozen=True, kw_only=True):
    """One request for archived rows, and the file that answers it."""

    id: str
    table: str
    """`schema.table`"""
    start: datetime
    """Rows from this instant …"""
    end: datetime
    """… and before this one."""
    state: State
    """waiting, ready, failed, expired (the file was removed) or erased."""
    objects: int | None = None
    """Archives that were read so far, while it waits."""
    rows: int | None = None
    """In the file; 0 if nothing is archived of this time."""
    size: int | None = None
    """Of the file in bytes."""
    sha256: str | None = None
    """Of the file."""
    expires_at: datetime | None = None
    """The file is deleted then."""
    problem: str | None = None
    """Why it failed, for operators."""
