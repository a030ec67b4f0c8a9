"""Every operation on queues; each is one script call.

The engine sends, resends and translates; the scripts define the operations. Calls are idempotent by
id: after a lost reply, the call is sent again and the script answers from its own record. If the
settings of a queue are missing on the server (a new server, lost data), the queue is declared again
before any job is served, so limits never disappear silently.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from faena.engine import scripts
from faena.engine.envelope import NewJob
from faena.engine.gates import LaneState, Waiting, read_lane_state, read_waiting
from faena.engine.keys import Keys, channel, reader_for
from faena.engine.overview import Overview, read_overview
from faena.engine.permission import check_permitted
from faena.engine.requester import requester
from faena.engine.script_library import load
from faena.engine.scripts import Answer, Exchanged, Look, Turn
from faena.engine.settings import SERVED, accept_declared, check_accepted
from faena.engine.wire.patience import at_most
from faena.engine.wire.subscription import Subscription
from faena.engine.wire.wire import Argument, Wire
from faena.errors import (
    ConfigError,
    InternalError,
    InvalidTransition,
    LeaseLost,
    NotDeclared,
    ShardsChanged,
    StoreError,
    StoreRejected,
)
from faena.values.shards import queue_of

Clock = Callable[[], int]
Told = Callable[[Exchanged], None]
T = TypeVar("T")

_MOST = 100
"""The most jobs in one script call; a longer list is split, and each part is atomic."""


class Engine:  # size: one short method for each operation of the broker
    """The operations of the broker, for any number of queues."""

    def __init__(
        self,
        wire: Wire,
        *,
        namespace: str,
        clock: Clock | None = None,
        patience_s: float = 30.0,
    ) -> None:
        self.wire = wire
        self.namespace = namespace
        self.clock = clock
        self.patience_s = patience_s
        self._settings: dict[str, Mapping[str, str] | None] = {}
        self._declared: set[str] = set()
        self._permitted: set[str] = set()
        self._keys: dict[str, Keys] = {}

    # -- settings ---------------------------------------------------------------------------

    def know(self, queue: str, settings: Mapping[str, str] | None) -> None:
        """Set the settings to declare at first use; None: another program declares the queue."""
        self._settings[queue] = settings
        self._declared -= {shard for shard in self._declared if queue_of(shard) == queue}

    async def declare(self, queue: str, *, serves: bool = False, warns: bool = True) -> None:
        """Write the settings given in code, except edited ones; `serves`: with the handlers."""
        await check_permitted(self.wire, self.namespace, queue, self.patience_s)
        settings = self._settings.get(queue) or self._settings.get(queue_of(queue))
        if settings is None:
            if queue_of(queue) not in self._settings:
                raise ConfigError(f"queue {queue!r} is not declared in this program", field="queue")
            if not await self.command("HEXISTS", queue, "conf", "lease_us"):
                raise NotDeclared(queue)
        else:
            flat = _flat({**settings, **SERVED} if serves else settings)
            reply = await self.ask("configure", queue, *flat, mode="declare")
            accept_declared(queue, reply, settings, warns=warns)
        self._declared.add(queue)

    async def configure(self, queue: str, changes: Mapping[str, str]) -> dict[str, str]:
        """Edit settings at run time, for every worker at its next call."""
        reply = await self.ask("configure", queue, *_flat(changes), mode="edit", by=requester())
        check_accepted(reply, changes)
        return scripts.text_pairs(reply)

    async def reset(self, queue: str, names: Sequence[str]) -> None:
        """Use the values in code again for these settings, from the next declaration on."""
        flat = [part for name in names for part in (name, "")]
        await self.ask("configure", queue, *flat, mode="reset", by=requester())
        await self.declare(queue, warns=False)

    # -- the two hot calls --------------------------------------------------------------------

    async def enqueue(
        self,
        queue: str,
        caller: str,
        call: str,
        jobs: Sequence[NewJob | tuple[str, bytes]],
        *,
        epoch: int = 0,
    ) -> list[Answer]:
        """Store 1..1000 (id, spec) pairs, with an answer for each; or raise ShardsChanged."""
        args = scripts.enqueue_args(caller, call, epoch, jobs)
        return scripts.read_enqueue(await self._send_declared("enqueue", queue, args), len(jobs))

    async def enqueue_durably(
        self,
        queue: str,
        caller: str,
        call: str,
        jobs: Sequence[NewJob | tuple[str, bytes]],
        wait: Sequence[Argument],
        *,
        epoch: int = 0,
    ) -> tuple[list[Answer], Any]:
        """The same, then WAIT or WAITAOF on the same connection; returns both answers."""
        args = [self._now(), *scripts.enqueue_args(caller, call, epoch, jobs)]
        call_and_wait = load("enqueue"), [self._keys_of(queue).prefix], args, [wait]
        patience_s, is_refused = self.patience_s + int(wait[-1]) / 1000, scripts.is_refused
        for _ in range(3):
            if queue not in self._declared:
                await self.declare(queue)
            reply, waited = await self.wire.run_and_wait(
                *call_and_wait, patience_s=patience_s, is_refused=is_refused
            )
            if not scripts.is_unconfigured(reply):
                if isinstance(waited[0], StoreRejected):
                    raise waited[0]
                return scripts.read_enqueue(reply, len(jobs)), waited[0]
            self._declared.discard(queue)
        raise InternalError(f"queue {queue!r} loses its settings as soon as they are written")

    async def exchange(self, queue: str, caller: str, worker: str, turn: Turn) -> Exchanged:
        """Settle and claim in one round trip."""
        args = scripts.exchange_args(caller, worker, turn)
        return scripts.read_exchange(await self._send_declared("exchange", queue, args), turn.call)

    async def exchange_when_woken(
        self, queue: str, caller: str, worker: str, turn: Turn, block_s: float, told: Told
    ) -> None:
        """Exchange as soon as work arrives, or when `block_s` has passed, in one trip.

        `told` is called with the answer. If it was not called, the outcome is unknown: `exchange`
        the same turn then.
        """

        def read(reply: Any) -> None:
            if not scripts.is_unconfigured(reply):
                told(scripts.read_exchange(reply, turn.call))

        args = [self._now(), *scripts.exchange_args(caller, worker, turn)]
        keys, script = self._keys_of(queue), load("exchange")
        with contextlib.suppress(StoreError):
            await self.wire.block_then_run(keys("wake"), block_s, script, [keys.prefix], args, read)

    # -- tenants --------------------------------------------------------------------------------

    async def tenant(
        self,
        queue: str,
        lane: str,
        changes: Mapping[str, str] | None = None,
        *,
        epoch: int = 0,
        by: str = "",
        duration_us: int | None = None,
    ) -> LaneState:
        """Change the settings of one lane, if `changes` are given, and read them.

        Raises ShardsChanged, with nothing changed, if the lane may be in another shard now.
        """
        flat, ask = _flat(changes or {}), self.ask
        named = {"lane": lane, "epoch": epoch or None, "by": by, "duration_us": duration_us}
        reply = await ask("tenant", queue, *flat, **named)
        if reply[0] == scripts.MOVED:
            raise ShardsChanged("the tenant may be in another shard now", op="tenant")
        return read_lane_state(reply)

    async def renew(
        self, queue: str, leases: Sequence[tuple[str, str]], least_lease_us: int = 0
    ) -> tuple[list[str], list[str]]:
        """Extend (id, lease) pairs; returns the ids of lost leases, and those of jobs to stop."""
        lost: list[str] = []
        stopping: list[str] = []
        for part in _parts(leases):
            args = scripts.renew_args(least_lease_us, part)
            gone, asked = await self._send_declared("renew", queue, args)
            lost += scripts.texts(gone)
            stopping += scripts.texts(asked)
        return lost, stopping

    async def note(
        self, queue: str, job: str, lease: str, *, progress: bytes = b"", lines: Sequence[str] = ()
    ) -> None:
        """Write a running job's progress and log lines."""
        reply = await self.ask("note", queue, *lines, id=job, lease=lease, progress=progress)
        if reply != b"OK":
            raise LeaseLost(f"job {job} is no longer held by this worker", op="note")

    # -- operations on jobs ---------------------------------------------------------------------

    async def cancel(self, queue: str, ids: Sequence[str]) -> list[str]:
        """For each id: cancelled, asked (it runs), its finished state, or unknown."""
        answers: list[str] = []
        for part in _parts(ids):
            reply = await self.ask_declared("cancel", queue, *part, by=requester())
            answers += scripts.texts(reply)
        return answers

    async def rerun(self, queue: str, ids: Sequence[str]) -> list[str]:
        """For each id: ready, the state or the desk's status that forbids it, or unknown."""
        return await self._once_each("rerun", queue, ids)

    async def promote(self, queue: str, ids: Sequence[str]) -> list[str]:
        """For each id: promoted, the state that forbids it, or unknown."""
        return await self._once_each("promote", queue, ids)

    async def remove(self, queue: str, ids: Sequence[str]) -> list[str]:
        """For each id: removed, what forbids it (running, member), or unknown."""
        return await self._once_each("remove", queue, ids)

    async def change(
        self, queue: str, job: str, *, delay_us: int | None = None, priority: int | None = None
    ) -> str:
        """The new state, the state that forbids the change, or unknown."""
        named = {**scripts.once("change"), "id": job, "delay_us": delay_us, "priority": priority}
        return str((await self.ask_declared("change", queue, **named, by=requester())).decode())

    # -- operations on queues -----------------------------------------------------------------

    async def hold(self, queue: str, reason: str, duration_us: int | None, by: str) -> bool:
        """Hold the queue until released, or for a time; False if this reason already holds it."""
        return await self.ask("hold", queue, reason=reason, duration=duration_us, by=by) == 1

    async def release(self, queue: str, reason: str) -> bool:
        """End a hold; False when there was none."""
        return await self.ask("hold", queue, reason=reason, duration="release", by=requester()) == 1

    async def clean(self, queue: str, state: str, age_us: int, slice_size: int) -> int:
        """Remove one slice of jobs of a state; returns fewer than the slice at the end."""
        named = {"state": state, "age_us": age_us, "slice": slice_size, "by": requester()}
        reply = await self.ask("clean", queue, **named)
        if isinstance(reply, bytes):
            raise InvalidTransition(f"jobs that are {state} cannot be removed by clean", op="clean")
        return int(reply)

    async def obliterate(self, queue: str, size: int, *, force: bool, drop: bool = True) -> str:
        """Remove one slice of everything: DONE, MORE, RUNNING (refused) or MAIL (messages left)."""
        named = {"slice": size, "force": ("", "1")[force], "drop": ("", "1")[drop]}
        reply = await self.ask("obliterate", queue, **named)
        self._declared.discard(queue)
        return str(reply.decode())

    # -- reading --------------------------------------------------------------------------------

    async def look(self, queue: str, ids: Sequence[str]) -> list[Look | None]:
        """Everything stored about some jobs; None for unknown ones."""
        found = await self._looked(queue, ids)
        missing = [job for job, facts in zip(ids, found, strict=True) if not facts]
        if missing and await self.take_in(queue):
            late = iter(await self._looked(queue, missing))
            found = [facts or next(late) for facts in found]
        return found

    async def _looked(self, queue: str, ids: Sequence[str]) -> list[Look | None]:
        rows = [row for part in _parts(ids) for row in await self.ask("look", queue, *part)]
        return [scripts.read_look(row) for row in rows]

    async def page(
        self, queue: str, state: str, limit: int, *, after: tuple[str, str], is_reverse: bool
    ) -> list[tuple[str, str]]:
        """(id, score) pairs of a state, after a given pair."""
        named = {"state": state, "is_reverse": ("", "1")[is_reverse], "limit": limit}
        behind = {"id": after[0], "score": after[1]}
        reply = scripts.texts(await self._read("page", queue, **named, **behind))
        return list(zip(reply[::2], reply[1::2], strict=True))

    async def explain(self, queue: str, job: str) -> Waiting:
        """All gates that keep a job waiting."""
        return read_waiting(await self._read("explain", queue, id=job))

    async def overview(self, queue: str) -> Overview:
        """Counts, holds, settings and workers at one instant."""
        return read_overview(queue, await self._read("overview", queue))

    async def await_job(self, queue: str, job: str) -> str:
        """Request a message on the `done` channel; returns the state now, or unknown."""
        return str((await self.ask("await", queue, id=job)).decode())

    async def idem(self, queue: str, **named: Argument) -> list[bytes]:
        """One step of an idempotency record."""
        return list(await self.ask("idem", queue, **named))

    def wake_key(self, queue: str) -> str:
        """The set an idle worker blocks on."""
        return self._keys_of(queue)("wake")

    async def listen(self, **on_job: Callable[[str, str], None]) -> Subscription:
        """Subscribe to channels of (queue, job) messages; some messages may be missed."""
        hears = {channel(self.namespace, name): reader_for(one) for name, one in on_job.items()}
        return await self.wire.listen(hears)

    async def info(self, queue: str, section: str) -> bytes:
        """A section of INFO of the server that has a queue."""
        key = self._keys_of(queue).prefix
        return bytes(await self.wire.call("INFO", section, key=key, patience_s=5.0))

    # -- sending --------------------------------------------------------------------------------

    async def _once_each(self, name: str, queue: str, ids: Sequence[str]) -> list[str]:
        answers: list[str] = []
        for part in _parts(ids):
            named = {**scripts.once(name), "by": requester()}
            reply = await self.ask_declared(name, queue, *part, **named)
            answers += scripts.texts(reply)
        return answers

    async def take_in(self, queue: str) -> bool:
        """Store the jobs in `arrivals`, before a script that only reads; False if it failed."""
        with contextlib.suppress(StoreError):
            keys, args = [self._keys_of(queue).prefix], [self._now()]
            return bool(await self.wire.run(load("arrive"), keys, args, patience_s=0) >= 0)
        return False

    async def _read(self, script: str, queue: str, /, **named: Argument) -> Any:
        with at_most(self.patience_s):
            await self.take_in(queue)
            return await self.ask(script, queue, **named)

    async def ask_declared(
        self, script: str, queue: str, /, *rest: Argument, **named: Argument | None
    ) -> Any:
        """Call a script; declare the queue only if it is unknown: others' settings stay."""
        args = load(script).args.arranged(script, rest, named)
        if queue not in self._declared | self._permitted:
            await check_permitted(self.wire, self.namespace, queue, self.patience_s)
            self._permitted.add(queue)
        reply = await self._send(script, queue, args)
        if scripts.is_unconfigured(reply):
            return await self._send_declared(script, queue, args)
        return reply

    async def _send_declared(self, name: str, queue: str, args: Sequence[Argument]) -> Any:
        for _ in range(3):
            if queue not in self._declared:
                await self.declare(queue, serves=name == "exchange")
            reply = await self._send(name, queue, args)
            if not scripts.is_unconfigured(reply):
                return reply
            self._declared.discard(queue)
            await asyncio.sleep(0)
        raise InternalError(f"queue {queue!r} loses its settings as soon as they are written")

    def ask(
        self, script: str, queue: str, /, *rest: Argument, **named: Argument | None
    ) -> Awaitable[Any]:
        """Call a script with its arguments by name, and `rest` for repeated ones.

        Raises InternalError, with nothing sent, if its header names other arguments.
        """
        return self._send(script, queue, load(script).args.arranged(script, rest, named))

    async def command(self, verb: str, queue: str, name: str, *args: Argument) -> Any:
        """Run one command, which must be safe to run twice, on one key of a queue."""
        key = self._keys_of(queue)(name)
        return await self.wire.call(verb, key, *args, key=key, patience_s=self.patience_s)

    def _send(self, name: str, queue: str, args: Sequence[Argument]) -> Awaitable[Any]:
        keys, all_args = [self._keys_of(queue).prefix], [self._now(), *args]
        return self.wire.run(load(name), keys, all_args, patience_s=self.patience_s)

    def _now(self) -> Argument:
        return self.clock() if self.clock else ""

    def _keys_of(self, queue: str) -> Keys:
        keys = self._keys.get(queue)
        if keys is None:
            keys = self._keys[queue] = Keys(self.namespace, queue)
        return keys


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _MOST):
        yield items[start : start + _MOST]


def _flat(settings: Mapping[str, str]) -> list[str]:
    return [part for pair in settings.items() for part in pair]
