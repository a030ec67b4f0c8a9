"""Producers, workers, operators and relocations of a queue with shards, on a real server."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Mapping
from typing import Any, NamedTuple

from faena.engine import Address, Engine, Wire
from faena.engine.calls.transfer import TransferCalls
from faena.engine.envelope import facts_in
from faena.engine.scripts import Answer, Settlement, Turn
from faena.engine.settings import declaration
from faena.errors import ShardsChanged
from faena.inspection.audit import audit
from faena.options import QueueOptions
from faena.outcomes import Completed, Limited, Outcome
from faena.sharding.relocation import Relocation
from faena.sharding.routing_table import (
    ANNOUNCED,
    MOVING,
    Change,
    Table,
    read_table,
    standing,
)
from faena.values.shards import own_shard
from tests._support.dump import READ_ALL, Dump, read_dump
from tests._support.gated_wire import GatedWire
from tests._support.lua import Lua
from tests._support.rig import SECOND, Clock
from tests._support.valkey import Server
from tests.properties.shards_ledger import Ledger, Rules
from tests.properties.shards_relocation import Hired

QUEUE = "q"
OWN = ("@a", "@b")
SHARDS = (QUEUE, "q/1", "q/2", "q/3", *(own_shard(QUEUE, lane) for lane in OWN))
REPLACING = ("debounce", "last")
LEFT_BY_MOVES = ("moves", "transfer_out", "late")


READ_BATCH = Lua(
    "batch",
    """
    local jobs = {}
    for i, job in ipairs(cmsgpack.unpack(ARGV[1])) do
      jobs[i] = { job[1], job[3] }
    end
    return jobs
    """,
)


class Lease(NamedTuple):
    """A job that was claimed at a shard."""

    shard: str
    job: str
    id: str


class Letter(NamedTuple):
    """Jobs addressed by a producer that has yet to send them."""

    shard: str
    epoch: int
    jobs: list[tuple[str, bytes]]


class Writer:
    """A producer: a program with a table of its own, which may be an old one."""

    def __init__(self, engine: Engine, settings: Mapping[str, str]) -> None:
        self.engine = engine
        self.table = Table()
        self.letters: list[Letter] = []
        self._settings = settings
        engine.know(QUEUE, settings)

    async def look(self) -> bool:
        """See how the table stands; False while nobody may send under it."""
        table = read_table(await TransferCalls(self.engine).table(QUEUE))
        if table.phase == ANNOUNCED:
            return False
        if table.epoch != self.table.epoch:
            for shard in table.all(QUEUE):
                place = standing(shard.name, table)
                self.engine.know(shard.name, {**self._settings, **place})
        self.table = table
        return True

    async def address(self, jobs: list[tuple[str, bytes]]) -> list[Letter]:
        """Letters to the shards of the jobs' lanes, without those that an old shard knows."""
        letters: dict[str, Letter] = {}
        for job, spec in jobs:
            lane = facts_in(spec).get("lane", "@")
            shard = self.table.shard_of(QUEUE, lane)
            if not await self._is_known(job, spec, lane, shard):
                letter = letters.setdefault(shard, Letter(shard, self.table.epoch, []))
                letter.jobs.append((job, spec))
        return list(letters.values())

    async def _is_known(self, job: str, spec: bytes, lane: str, to: str) -> bool:
        former = self.table.former().shard_of(QUEUE, lane)
        if self.table.phase != MOVING or former == to:
            return False
        facts = facts_in(spec)
        wanted = [(job, facts.get("mode", ""), facts.get("unique", ""))]
        return (await TransferCalls(self.engine).known(former, to, wanted))[0] is not None


class ShardsDriver:
    """Does what it is told and has the ledger look after every step."""

    def __init__(self, server: Server, namespace: str, options: QueueOptions) -> None:
        self.loop = asyncio.new_event_loop()
        self.namespace = namespace
        self.clock = Clock()
        self.address = Address.parse(server.url)
        self.wire = Wire(self.address)
        self.settings = declaration(options)
        self.engine = self.new_engine()
        self.ledger = Ledger(QUEUE, _rules(options))
        self.writers = [Writer(self.new_engine(), self.settings) for _ in range(2)]
        self.gates = [GatedWire(self.address) for _ in range(2)]
        self.hired: list[Hired | None] = [None, None]
        self.leases: list[Lease] = []
        self.is_broken = False
        self._calls = itertools.count(1)
        self._stem = f"{namespace}:{{{QUEUE}"
        self._seen: list[Any] = []
        self.story: list[str] = []
        self.do(self.engine.declare(QUEUE))

    def new_engine(self) -> Engine:
        """A program's own; it knows what code declares."""
        engine = Engine(self.wire, namespace=self.namespace, clock=self.clock, patience_s=60)
        engine.know(QUEUE, self.settings)
        return engine

    # -- steps ------------------------------------------------------------------------------------

    def wait(self, awaited: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(awaited)

    def do(self, awaited: Awaitable[Any]) -> Any:
        answer = self.wait(awaited)
        self.look()
        return answer

    def look(self) -> None:
        reply = self.wait(self.wire.run(READ_ALL, [self._stem], [], patience_s=60))
        if reply == self._seen:  # a call that only read
            return
        self._seen = reply
        shards = self.wait(_read_all(self.wire, reply))
        problems = self.ledger.look(self.clock.now, shards)
        self.is_broken = bool(problems)
        assert not problems, f"{problems} after {self.story[-12:]} in {shards}"

    def next_call(self) -> str:
        return "c" * next(self._calls)

    @property
    def table(self) -> Table:
        return self.ledger.view.table

    def edges(self) -> list[int]:
        """The instants ahead at which something is due or ends."""
        found: set[float] = set()
        for sight in self.ledger.view.shards.values():
            for column in ("delayed", "running", "parked"):
                found |= set(sight.scores(column).values())
        return sorted(int(at) for at in found if self.clock.now < at < 1e18)

    # -- producers --------------------------------------------------------------------------------

    def write(self, who: int, jobs: list[tuple[str, bytes]]) -> None:
        """Address jobs; they are sent later."""
        writer = self.writers[who]
        writer.letters += self.do(writer.address(jobs))

    def send(self, who: int) -> None:
        """Send the oldest letter; one that is refused is addressed anew, and then must be taken."""
        writer = self.writers[who]
        letter = writer.letters.pop(0)
        if self._post(writer, letter) or not self.do(writer.look()):
            return
        for again in self.do(writer.address(letter.jobs)):
            assert self._post(writer, again), f"{again} must be taken under {writer.table}"

    def _post(self, writer: Writer, letter: Letter) -> bool:
        call = QUEUE, self.next_call()
        try:
            answers = self.wait(
                writer.engine.enqueue(letter.shard, *call, letter.jobs, epoch=letter.epoch)
            )
        except ShardsChanged:
            self.look()
            return False
        for (job, spec), answer in zip(letter.jobs, answers, strict=True):
            self._note(job, spec, answer)
        self.look()
        return True

    def _note(self, job: str, spec: bytes, answer: Answer) -> None:
        if answer.code in ("CREATED", "REPLACED", "SLOWED"):
            self.ledger.take_in(job, facts_in(spec))
        if answer.code == "REPLACED":
            self.ledger.entries[str(answer.detail)].is_removed = True

    # -- workers ----------------------------------------------------------------------------------

    def exchange(
        self, shard: str, want: int, settled: list[Settlement], *, is_sweep: bool = False
    ) -> list[Lease]:
        turn = Turn(self.next_call(), want, settled, None, is_sweep)
        answer = self.do(self.engine.exchange(shard, "worker", "worker", turn))
        leases = [Lease(shard, claim.id, claim.lease) for claim in answer.claimed]
        self.leases = (self.leases + leases)[-24:]
        return leases

    def settle(self, lease: Lease, outcome: Outcome, want: int = 0) -> None:
        if isinstance(outcome, Limited) and self.ledger.holds(lease.job, lease.id):
            self.ledger.hold(lease.job, self.clock.now + outcome.delay_us)
        self.exchange(lease.shard, want, [Settlement(lease.job, lease.id, outcome)])

    # -- operators --------------------------------------------------------------------------------

    def operate(self, verb: str, job: str) -> None:
        """At the shard that has the job; one that travels is let alone."""
        at = [shard for shard, seen in self.ledger.view.jobs() if seen.id == job]
        if at:
            (state,) = self.wait(getattr(self.engine, verb)(at[0], [job]))
            if verb == "cancel" and state == "asked":
                self.ledger.entries[job].is_asked = True
            if verb == "rerun" and state in ("ready", "blocked"):
                self.ledger.rerun(job)
            self.look()

    # -- relocations ----------------------------------------------------------------------------

    def change(self, what: Change) -> None:
        relocation = Relocation(self.engine, QUEUE)
        self.do(relocation.begin(what, self.table, "ops"))

    def hire(self, slot: int) -> None:
        hired = Hired(self.gates[slot], self.namespace, self.clock)
        self.wait(hired.begin(QUEUE, self.settings))
        self.hired[slot] = hired

    def step(self, slot: int, *, is_doubled: bool = False) -> None:
        hired = self.hired[slot]
        if hired is None:
            return
        self.story.append(f"{slot}: {hired.next_call}")
        self.do(hired.step(is_doubled=is_doubled))
        if hired.is_done:
            self.hired[slot] = None

    def abandon(self, slot: int) -> None:
        hired = self.hired[slot]
        if hired is not None:
            self.wait(hired.abandon())
            self.hired[slot] = None

    # -- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Whoever is at work ends it undisturbed; then every job must come up."""
        if self.is_broken:
            return
        self.abandon(1)
        self.work_to_the_end()
        for _ in range(60):
            self.clock.now += 100 * SECOND
            if not self._run_all():
                break
        self._check_end()

    def work_to_the_end(self) -> None:
        """The first relocation, or the next one, goes on until no change is under way."""
        for number in range(2000):
            if not self.table.phase and self.hired[0] is None:
                break
            if self.hired[0] is None:
                self.hire(0)
            self.step(0)
            if number % 20 == 19:
                self._let_leases_end()
        assert not self.table.phase, f"{self.table} must come to an end: {self.story[-60:]}"

    def _let_leases_end(self) -> None:
        self.clock.now += 60 * SECOND
        for shard in self._all_shards():
            self.exchange(shard, 0, [], is_sweep=True)

    def _all_shards(self) -> list[str]:
        shards = [*self.table.all(QUEUE), *self.table.former().all(QUEUE)]
        return list(dict.fromkeys(shard.name for shard in shards))

    def _run_all(self) -> int:
        """Claim and complete whatever comes up at this instant; returns how many live on."""
        for shard in self._all_shards():
            settled: list[Settlement] = []
            while True:
                leases = self.exchange(shard, 10, settled, is_sweep=True)
                settled = [Settlement(one.job, one.id, Completed()) for one in leases]
                if not settled:
                    break
        return sum(len(sight.live()) for sight in self.ledger.view.shards.values())

    def _check_end(self) -> None:
        view = self.ledger.view
        live = [(shard, job) for shard, job in view.jobs() if job.state not in _FINISHED]
        assert not live, f"no job may be stuck: {live} in {view.shards}"
        left = [(shard, name) for shard, at in view.shards.items() for name in at.keys]
        moves = [pair for pair in left if pair[1] in LEFT_BY_MOVES]
        assert not moves, f"{moves} outlive the change in {view.shards}"
        lost = [(shard, job) for shard, job in view.jobs() if not self._lives_at(shard, job.lane)]
        assert not lost, f"{lost} must be where their lanes live"
        for shard in SHARDS:
            assert self.wait(audit(self.engine, shard)) == [], shard

    def _lives_at(self, shard: str, lane: str | None) -> bool:
        return self.table.shard_of(QUEUE, lane or "@") == shard

    def close(self) -> None:
        for slot in range(2):
            self.abandon(slot)
        self.wait(self._close())
        self.loop.close()

    async def _close(self) -> None:
        for shard in SHARDS:
            while await self.engine.obliterate(shard, 1000, force=True) != "DONE":
                pass
        await self.wire.call("FLUSHALL")
        for wire in (self.wire, *self.gates):
            await Wire.close(wire)


_FINISHED = ("completed", "dead", "cancelled")


def _rules(options: QueueOptions) -> Rules:
    limits = {limit.per_us: limit.max for limit in options.tenant_limits}
    return Rules(options.on_failure == "block", limits, options.tenant_max_running)


async def _read_all(wire: Wire, reply: list[Any]) -> dict[str, Dump]:
    """Every shard by its name, out of all that was found under the beginning they share."""
    rows: dict[str, list[Any]] = {}
    for name, *rest in sorted(reply):
        shard, _, short = name.partition(b"}:")
        rows.setdefault(QUEUE + shard.decode(), []).append([short, *rest])
    dumps = {shard: read_dump(found) for shard, found in rows.items()}
    for taken in dumps.values():
        for to, packed in taken.get("transfer_out", {}).items():
            number, _, batch = packed.partition(b" ")
            jobs = await wire.run(READ_BATCH, [QUEUE], [batch], patience_s=60)
            taken["transfer_out"][to] = int(number), [(a.decode(), b.decode()) for a, b in jobs]
    return dumps
