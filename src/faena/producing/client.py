"""The write side: new jobs on their way to the broker, and operations on jobs that are there.

A queue may have several shards: a new job goes to that of its lane, and an operation is asked for
at one shard after the other until one knows the job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from faena.errors import InvalidTransition, JobNotFound
from faena.producing.sender import Sender

SLICE = 200
"""Jobs removed in one call at most: the server waits for nothing else while it lasts."""

DEAD_SLICE = 50
"""The same for dead jobs: each must also be taken from the dead-letter desk."""


class Client(Sender):
    """Enqueues jobs and changes those that wait."""

    async def cancel(self, queue: str, job: str) -> str:
        """Cancel a job: "cancelled", or "asked" when it runs and will be stopped."""
        answer = await self._ask(queue, lambda shard: _only(self._engine.cancel(shard, [job])))
        return _granted(answer, {"cancelled", "asked"}, job, "cancel")

    async def rerun(self, queue: str, job: str) -> None:
        """Run a finished job again, with fresh attempts; not one that the desk has dealt with."""
        answer = await self._ask(queue, lambda shard: _only(self._engine.rerun(shard, [job])))
        _refuse_decided(answer, job)
        _granted(answer, {"ready", "blocked"}, job, "rerun")

    async def promote(self, queue: str, job: str) -> None:
        """Run a delayed job now."""
        answer = await self._ask(queue, lambda shard: _only(self._engine.promote(shard, [job])))
        _granted(answer, {"promoted", "ready", "blocked"}, job, "promote")

    async def remove(self, queue: str, job: str) -> None:
        """Remove a job for good; refused where somebody needs it: it runs, or a flow waits."""
        answer = await self._ask(queue, lambda shard: _only(self._engine.remove(shard, [job])))
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
        """Run every job now that is delayed when this begins; returns how many."""
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
        self, queue: str, job: str, *, delay_us: int | None, priority: int | None
    ) -> None:
        """Change when a waiting job runs, or its priority."""
        answer = await self._ask(
            queue,
            lambda shard: self._engine.change(shard, job, delay_us=delay_us, priority=priority),
        )
        _granted(answer, {"ready", "delayed"}, job, "change")

    async def _ask(self, queue: str, ask: Callable[[str], Awaitable[str]]) -> str:
        """The answer of the shard that knows the job."""
        return await self._routers.of(queue).first(ask, is_found=lambda answer: answer != "unknown")

    async def sweep_out(
        self,
        queue: str,
        state: str,
        age_us: int,
        most: int | None,
        report: Callable[[int], None] | None = None,
    ) -> int:
        """Remove jobs of a state slice by slice, `report` hears how many went; returns that."""
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

        What a shard has to tell others is carried first.
        """
        router = self._routers.of(queue)
        for shard in reversed(await router.names()):  # the first one last: it knows the others
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
    """What was decided of a dead job stays so."""
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
