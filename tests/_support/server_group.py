"""Several real servers that belong together: a primary under sentinels, or a cluster."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests._support.valkey import Server

SERVICE = "orders"


class ServerGroup:
    """Starts servers and ends them together."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def _start(self, *config: str, sentinel: bool = False) -> Server:
        return self._stack.enter_context(Server(*config, sentinel=sentinel))

    def _begin(self) -> None:
        """Start the servers; when one fails, those before it are ended."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._stack.close()


class SentinelGroup(ServerGroup):
    """A primary and a replica, with three sentinels that need two to agree."""

    def _begin(self) -> None:
        at_once = "repl-diskless-sync-delay 0"
        self.primary = self._start(at_once)
        self.replica = self._start(f"replicaof 127.0.0.1 {self.primary.port}", at_once)
        self.sentinels = [self._start(*self._rules(), sentinel=True) for _ in range(3)]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    def is_ready(self) -> bool:
        """True when the replica is in step and every sentinel knows it and both its peers."""
        with self.primary.client() as client:
            if client.info("replication")["connected_slaves"] != 1:
                return False
        return all(self._knows_all(sentinel) for sentinel in self.sentinels)

    def _rules(self) -> list[str]:
        return [
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary.port} 2",
            f"sentinel down-after-milliseconds {SERVICE} 400",
            f"sentinel failover-timeout {SERVICE} 3000",
        ]

    def _knows_all(self, sentinel: Server) -> bool:
        with sentinel.client() as client:
            state = client.execute_command("SENTINEL", "MASTER", SERVICE)
        return int(state["num-slaves"]) == 1 and int(state["num-other-sentinels"]) == 2


class ClusterGroup(ServerGroup):
    """Three primaries with a third of the slots each."""

    def _begin(self) -> None:
        rules = ("cluster-enabled yes", "cluster-node-timeout 5000")
        self.servers = [self._start(*rules) for _ in range(3)]
        self._introduce()

    @property
    def url(self) -> str:
        return f"redis+cluster://127.0.0.1:{self.servers[0].port}"

    def is_ready(self) -> bool:
        """True when every node sees all slots served by three nodes."""
        return all(self._is_complete(server) for server in self.servers)

    def owner(self, slot: int) -> Server:
        return next(server for server in self.servers if slot in self._slots(server))

    def command(self, server: Server, *words: str | int) -> object:
        with server.client() as client:
            client.response_callbacks.clear()  # the replies as they come
            return client.execute_command(*words)

    def hand_over(self, slot: int, server: Server) -> None:
        """Make a node the owner of a slot whatever others still tell each other of it."""
        for each in (server, *(one for one in self.servers if one is not server)):
            self.command(each, "CLUSTER", "SETSLOT", slot, "NODE", self.node_id(server))
        self.command(server, "CLUSTER", "BUMPEPOCH")

    def node_id(self, server: Server) -> str:
        return str(self.command(server, "CLUSTER", "MYID"))

    def _introduce(self) -> None:
        bounds = [(0, 5460), (5461, 10922), (10923, 16383)]
        for server, (first, last) in zip(self.servers, bounds, strict=True):
            self.command(server, "CLUSTER", "ADDSLOTSRANGE", first, last)
            self.command(server, "CLUSTER", "MEET", "127.0.0.1", self.servers[0].port)

    def _is_complete(self, server: Server) -> bool:
        info = str(self.command(server, "CLUSTER", "INFO"))
        return "cluster_state:ok" in info and "cluster_size:3" in info

    def _slots(self, server: Server) -> set[int]:
        """Slots out of the node's own line, whose words from the ninth on are ranges."""
        lines = str(self.command(server, "CLUSTER", "NODES")).splitlines()
        (mine,) = (line for line in lines if "myself" in line)
        slots: set[int] = set()
        for words in mine.split()[8:]:
            first, _, last = words.partition("-")
            if first.isdigit():  # the others tell of slots on the move
                slots.update(range(int(first), int(last or first) + 1))
        return slots
