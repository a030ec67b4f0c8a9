"""The systems and the works of a run: what is installed, what is measured, and in which unit.

`pending` holds server commands whose answers add up to the jobs not yet settled, so the harness can
see from outside when a drain is really over.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One system and how to install it; versions are pinned so that runs can be compared."""

    name: str
    module: str
    packages: tuple[str, ...] = ()
    pending: tuple[str, ...] = field(default=())
    is_node: bool = False

    @property
    def version(self) -> str:
        """The pinned version of the system itself, empty for faena."""
        return self.packages[0].replace("@", "==").rpartition("==")[2] if self.packages else ""


@dataclass(frozen=True, slots=True)
class Work:
    """One figure of the report; `group` names the measurement that yields it."""

    name: str
    label: str
    unit: str
    group: str
    more_is_better: bool


FAENA = Peer(
    name="faena",
    module="faena",
    pending=("ZCARD bench:{bench}:ready", "ZCARD bench:{bench}:running"),
)

PEERS: tuple[Peer, ...] = (
    Peer(
        name="taskiq",
        module="taskiq",
        packages=(
            "taskiq==0.13.0",
            "taskiq-redis==1.2.4",
            "redis==8.1.0",
            "hiredis==3.5.0",
            "uvloop==0.23.0",
        ),
        pending=("XPENDING bench taskiq",),
    ),
    Peer(
        name="saq",
        module="saq",
        packages=(
            "saq==0.26.4",
            "redis==7.4.1",
            "hiredis==3.5.0",
            "uvloop==0.23.0",
            "typing-extensions==4.15.0",  # saq needs it and does not ask for it
        ),
        pending=("LLEN saq:bench:queued", "LLEN saq:bench:active", "ZCARD saq:bench:incomplete"),
    ),
    Peer(
        name="arq",
        module="arq",
        packages=("arq==0.28.0", "redis==5.3.1", "hiredis==3.5.0", "uvloop==0.23.0"),
        pending=("ZCARD bench",),
    ),
    Peer(
        name="streaq",
        module="streaq",
        packages=("streaq==7.2.0", "coredis==6.9.0", "uvloop==0.23.0"),
        pending=("XLEN streaq:bench:queues:normal",),
    ),
    Peer(
        name="docket",
        module="docket",
        packages=("pydocket==0.27.0", "redis==8.1.0", "hiredis==3.5.0", "uvloop==0.23.0"),
        pending=("XLEN bench:stream", "ZCARD bench:queue"),
    ),
    Peer(
        name="huey",
        module="huey",
        packages=("huey==3.5.4", "redis==8.1.0", "hiredis==3.5.0"),
        pending=("LLEN huey.redis.bench",),
    ),
    Peer(
        name="celery",
        module="celery",
        packages=("celery[redis]==5.7.0", "redis==8.1.0", "hiredis==3.5.0"),
        pending=("LLEN bench", "HLEN unacked"),
    ),
    Peer(
        name="rq",
        module="rq",
        packages=("rq==2.12.0", "redis==8.1.0", "hiredis==3.5.0"),
        pending=("LLEN rq:queue:bench", "ZCARD rq:wip:bench"),
    ),
    Peer(
        name="dramatiq",
        module="dramatiq",
        packages=("dramatiq==2.2.1", "redis==8.1.0", "hiredis==3.5.0"),
        pending=("HLEN dramatiq:bench.msgs",),
    ),
    Peer(
        name="bullmq",
        module="bullmq",
        packages=("bullmq==3.4.4", "redis==8.1.0", "hiredis==3.5.0", "uvloop==0.23.0"),
        pending=("LLEN bull:bench:wait", "LLEN bull:bench:active"),
    ),
    Peer(
        name="bullmq-node",
        module="bullmq_node",
        packages=("bullmq@6.7.0", "ioredis@6.0.0"),
        pending=("LLEN bull:bench:wait", "LLEN bull:bench:active"),
        is_node=True,
    ),
)

SYSTEMS: dict[str, Peer] = {peer.name: peer for peer in (FAENA, *PEERS)}

WORKS: dict[str, Work] = {
    work.name: work
    for work in (
        Work("enqueue_bulk", "bulk enqueue", "jobs/s", "backlog", more_is_better=True),
        Work("enqueue_single", "single enqueue", "jobs/s", "single", more_is_better=True),
        Work("drain", "drain", "jobs/s", "backlog", more_is_better=True),
        Work("latency_p50", "latency p50", "µs", "latency", more_is_better=False),
        Work("latency_p99", "latency p99", "µs", "latency", more_is_better=False),
        Work("io50", "50 ms I/O", "jobs/s", "io", more_is_better=True),
        Work("server_us_per_job", "server per job", "µs", "backlog", more_is_better=False),
        Work("server_cpu_us_per_job", "server cpu per job", "µs", "backlog", more_is_better=False),
        Work("memory_per_job", "memory per job", "bytes", "backlog", more_is_better=False),
        Work("idle_commands_per_s", "idle commands", "1/s", "idle", more_is_better=False),
    )
}
