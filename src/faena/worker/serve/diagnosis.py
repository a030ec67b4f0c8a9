"""What worker processes and their broker look like together, in words that a probe can log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.worker.serve.member import Member
from faena.worker.serve.team import Team
from faena.worker.serve.vitals import Vitals

_WITHIN_S: Final = 3.0
"""How long a worker may take to answer: its script may take two seconds, then the broker is out."""
_SILENT: Final = "it does not answer: its event loop is blocked, or the process is frozen"

_decoder = msgspec.msgpack.Decoder(Vitals)


class Examined(NamedTuple):
    """One process; without vitals, it did not answer."""

    pid: int
    vitals: Vitals | None

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with it."""
        if self.vitals is None:
            return (_SILENT,)
        broker = () if self.vitals.broker is None else (self.vitals.broker,)
        servers = (one for one in self.vitals.servers.values() if one is not None)
        return (*broker, *self.vitals.stalled, *servers)

    @property
    def status(self) -> str:
        """In one word."""
        if self.vitals is None:
            return "silent"
        if self.vitals.broker is not None:
            return "unreachable"
        if self.vitals.stalled:
            return "stalled"
        if any(self.vitals.servers.values()):
            return "degraded"
        return "stopping" if self.vitals.is_stopping else "ok"

    def to_dict(self) -> dict[str, Any]:
        """As it is told over HTTP."""
        told: dict[str, Any] = {"pid": self.pid, "status": self.status, "problems": self.problems}
        if self.vitals is not None:
            names = ("name", "latency_ms", "running", "slots", "queues")
            told |= {name: getattr(self.vitals, name) for name in names}
        return told


class Diagnosis(NamedTuple):
    """All of them at one instant."""

    state: str
    wanted: int
    processes: Sequence[Examined]

    @property
    def is_ok(self) -> bool:
        """Whether jobs are consumed: some process serves, and nothing is wrong with any."""
        return not self.problems

    @property
    def status(self) -> str:
        """In one word: what is worst."""
        if not self.processes:
            return "down" if self.state == "serving" else self.state
        found = {one.status for one in self.processes if one.problems}
        for word in ("unreachable", "stalled", "silent", "degraded"):
            if word in found:
                return word
        return "stopping" if self.state == "stopping" else "ok"

    @property
    def latency_ms(self) -> float | None:
        """The longest round trip of a script; None if no process has run one."""
        seen = (one.vitals.latency_ms for one in self.processes if one.vitals is not None)
        return max((latency for latency in seen if latency is not None), default=None)

    @property
    def redis(self) -> str:
        """How the broker is: unknown if no process answers."""
        if self.broker is not None:
            return "unreachable"
        return "unknown" if self.latency_ms is None else "ok"

    @property
    def queues(self) -> str:
        """Whether those that answer consume."""
        seen = (one.vitals for one in self.processes if one.vitals is not None)
        return "stalled" if any(one.stalled for one in seen) else "ok"

    @property
    def servers(self) -> dict[str, str]:
        """How other servers of the app are, by name: out if a process says so."""
        seen = [one.vitals.servers for one in self.processes if one.vitals is not None]
        names = dict.fromkeys(name for each in seen for name in each)
        out = {name for each in seen for name, problem in each.items() if problem is not None}
        return {name: "unreachable" if name in out else "ok" for name in names}

    @property
    def broker(self) -> str | None:
        """Why the broker is out, as the first process says that says so."""
        seen = (one.vitals.broker for one in self.processes if one.vitals is not None)
        return next((problem for problem in seen if problem is not None), None)

    @property
    def problems(self) -> list[str]:
        """Each with the process it is about."""
        if not self.processes and self.state != "stopping":
            return ["no worker process serves yet, or any more"]
        return [f"worker {one.pid}: {said}" for one in self.processes for said in one.problems]


async def examine(team: Team) -> Diagnosis:
    """Ask each process that serves; it takes three seconds at most."""
    found = await asyncio.gather(*map(_examine, team.members))
    return Diagnosis(team.state, team.wanted, found)


async def _examine(member: Member) -> Examined:
    try:
        body = await member.ask("vitals", _WITHIN_S, all_of={})
    except TimeoutError:
        return Examined(member.pid, None)
    return Examined(member.pid, None if body is None else _decoder.decode(body))
