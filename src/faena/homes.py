"""Where the jobs of a queue live: one home, or several that together are the queue."""

from __future__ import annotations

from typing import NamedTuple


class Home(NamedTuple):
    """One place where jobs of a queue wait and run: a queue of its own to the engine."""

    name: str
    """What the engine calls it: the queue's own name, `invoices/1`, `invoices/@acme`."""

    pool: str
    """Homes of one pool share a worker's slots: the shards do, a tenant of its own has its own."""
