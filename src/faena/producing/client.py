"""The write side: sends new jobs to the broker, and changes existing ones.

A queue may have several shards. A new job goes to the shard of its lane, and so does an operation
if the lane is known; else it is sent to one shard after the other until one knows the job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from faena.errors import InvalidTransition, JobNotFound
from faena.producing.sender import Sender

SLICE = 200
"""The most jobs removed in one call, which blocks the server."""

DEAD_SLICE = 50
"""The same for dead jobs, which are removed from the dead-letter desk as well."""


class Client(Sender):
    """Enqueues and changes jobs."""

    async def cancel(self, queue: str, job: str, lane: str | None = None) -> str:
        """Cancel a job: "cancelled", or "asked" if it runs and will be stopped."""
        answer = await self._ask(
            queue, lane, lambda shard: _only(self._engine.cancel(shard, [job]))
        )
        return _granted(answer, {"cancelled", "asked"}, job, "cancel")

    async def rerun(self, queue: str, job: str, lane: str | None = None) -> None:
        """Run a finished job again, with fresh attempts; refused if the desk has decided on it."""
        answer = await self._ask(queue, lane, lambda shard: _only(self._engine.rerun(shard, [job])))
        _refuse_decided(answer, job)
        _granted(answer, {"ready", "blocked"}, job, "rerun")

    async def promote(self, queue: str, job: str, lane: str | None = None) -> None:
        """Run a delayed job now."""
        answer = await self._ask(
            queue, lane, lambda shard: _only(self._engine.promote(shard, [job]))
        )
        _granted(answer, {"promoted", "ready", "blocked"}, job, "promote")

    async def remove(self, queue: str, job: str, lane: str | None = None) -> None:
        """Remove a job; refused if it runs, or if a flow or group waits for it."""
        answer = await self._ask(
            queue, lane, lambda shard: _only(self._engine.remove(shard, [job]))
        )
        if answer == "member":
            raise InvalidTransition(
                f"cannot remove job {job}: a flow or a group waits for its end; cancel it instead",
                op="remove_job",
            )
        if answer == "running":
            raise InvalidTransition(
                f"cannot remove job {job}: it is running; cancel it first", op="remove_job"
            )
        _granted(answer, {"removed"}, job, "remove")

    async def promote_all(self, queue: str, report: Callable[[int], None] | None = None) -> int:
        """Run now all jobs that are delayed at the start of the call; returns how many."""
        promoted = 0
        for shard in await self._routers.of(queue).names():
            left = (await self._engine.overview(shard)).counts["delayed"]
            while left > 0:
                page = await self._engine.page(
                    shard, "delayed", min(left, SLICE), after=("", ""), is_reverse=False
                )
                if not page:
                    break
                answers = await self._engine.promote(shard, [job for job, _ in page])
                gone = answers.count("promoted")
                promoted += gone
                left -= len(page)
                if report is not None:
                    report(gone)
        return promoted

    async def change(
        self,
        queue: str,
        job: str,
        lane: str | None = None,
        *,
        delay_us: int | None,
        priority: int | None,
    ) -> None:
        """Change when a waiting job runs, or its priority."""
        answer = await self._ask(
            queue,
            lane,
            lambda shard: self._engine.change(shard, job, delay_us=delay_us, priority=priority),
        )
        _granted(answer, {"ready", "delayed"}, job, "change")

    async def _ask(self, queue: str, lane: str | None, ask: Callable[[str], Awaitable[str]]) -> str:
        """The answer of the shard that knows the job; only those of `lane` are asked, if given."""
        return await self._routers.of(queue).first(
            ask, is_found=lambda answer: answer != "unknown", lane=lane
        )

    async def sweep_out(
        self,
        queue: str,
        state: str,
        age_us: int,
        most: int | None,
        report: Callable[[int], None] | None = None,
    ) -> int:
        """Remove jobs of a state in slices, and `report` the number so far; returns the total."""
        removed, at_once = 0, DEAD_SLICE if state == "dead" else SLICE
        for shard in await self._routers.of(queue).names():
            size = gone = at_once
            while gone == size and (most is None or removed < most):
                size = at_once if most is None else min(at_once, most - removed)
                gone = await self._engine.clean(shard, state, age_us, size)
                removed += gone
                if report is not None:
                    report(gone)
        return removed

    async def obliterate(
        self, queue: str, *, force: bool, carry: Callable[[str], Awaitable[None]]
    ) -> None:
        """Remove a queue with everything in it; refused while jobs run unless forced.

        Messages to other shards are relayed first.
        """
        router = self._routers.of(queue)
        for shard in reversed(await router.names()):  # the first one last: it has the routing table
            await self._obliterate(shard, force=force, carry=carry)
        router.forget()

    async def _obliterate(
        self, queue: str, *, force: bool, carry: Callable[[str], Awaitable[None]]
    ) -> None:
        is_carried = False
        while True:
            answer = await self._engine.obliterate(queue, SLICE, force=force, drop=is_carried)
            if answer == "DONE":
                return
            if answer == "MAIL":
                await carry(queue)
                is_carried = True
            if answer == "RUNNING":
                raise InvalidTransition(
                    f"queue {queue} has running jobs: stop its workers first, or use force",
                    op="obliterate",
                )


async def _only(answers: Awaitable[Sequence[str]]) -> str:
    (answer,) = await answers
    return answer


def _refuse_decided(answer: str, job: str) -> None:
    """Refuse if the dead-letter desk has decided on the job."""
    word, _, new_id = answer.partition(" ")
    if word == "retried":
        raise InvalidTransition(
            f"cannot rerun job {job}: it was retried as {new_id}; rerun that one", op="rerun"
        )
    if word in {"resolved", "discarded"}:
        raise InvalidTransition(
            f"cannot rerun job {job}: it is {word} at the dead-letter desk; "
            f"enqueue a new job to run it",
            op="rerun",
        )


def _granted(answer: str, good: set[str], job: str, op: str) -> str:
    if answer in good:
        return answer
    if answer == "unknown":
        raise JobNotFound(f"no job {job} in this queue (retention may have removed it)", op=op)
    raise InvalidTransition(f"cannot {op} job {job}: it is {answer}", op=op)
