"""Names of shards: `invoices` is the first one, `invoices/1` the second, and `invoices/@acme` the
shard of the dedicated tenant acme."""

from __future__ import annotations

from urllib.parse import quote


def shard_name(queue: str, index: int) -> str:
    """The name of a shard that lanes share."""
    return f"{queue}/{index}" if index else queue


def own_shard(queue: str, lane: str) -> str:
    """The name of a lane's own shard; a tenant's name may have any printable character."""
    return f"{queue}/@{quote(lane[1:], safe='')}"


def queue_of(shard: str) -> str:
    """The queue that a shard belongs to."""
    return shard.partition("/")[0]


def shard_index(shard: str) -> int | None:
    """The number of a shared shard; None for a tenant's own."""
    _, _, rest = shard.partition("/")
    return None if rest.startswith("@") else int(rest or 0)
