"""Links for blocking waits, and which keys one link may wait for together."""

from __future__ import annotations

from collections.abc import Iterable

from faena.engine.wire.address import Node
from faena.engine.wire.dialer import Dialer
from faena.engine.wire.link import Link
from faena.engine.wire.topology import slot_of

Group = tuple[str, ...]
"""Keys that may be waited for together."""


class IdleLinks:
    """Idle links by server, for reuse."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._links: dict[Node, list[Link]] = {}

    async def take(self, node: Node) -> Link:
        """A link to a server; a new one if none is idle."""
        links = self._links.get(node, [])
        while links:
            link = links.pop()
            if link.is_open:
                return link
        return await self._dialer.dial(node)

    def give(self, node: Node, link: Link) -> None:
        """Let a link be used again."""
        self._links.setdefault(node, []).append(link)

    def close(self) -> None:
        """Close the idle links."""
        for links in self._links.values():
            for link in links:
                link.close()
        self._links.clear()


def groups_of(keys: Iterable[str], *, is_cluster: bool) -> list[Group]:
    """A server blocks a connection for keys of one slot only; one that is alone has one slot."""
    by_slot: dict[int, list[str]] = {}
    for key in keys:
        by_slot.setdefault(slot_of(key) if is_cluster else 0, []).append(key)
    return [tuple(group) for group in by_slot.values()]
