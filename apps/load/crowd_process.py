"""`python -m apps.load.crowd_process`: virtual users, in a process of their own.

The first line of its input is the plan; when the input ends, so does the process. Four times a
second it writes a line with all requests since. An empty loop runs beside the users: what it is
late by, the measurements may be wrong by.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import Final

import uvloop

from apps.load.crowd_plan import (
    CrowdPlan,
    Done,
    Errand,
    Group,
    Sample,
    Told,
    read_errands,
)
from apps.load.http_client import Answer, Connection, Unanswered

_TELL_EVERY_S: Final = 0.25
_STEER_EVERY_S: Final = 0.05
_TICK_S: Final = 0.01
_ANSWER_WITHIN_S: Final = 60.0
_UNANSWERED_PAUSE_S: Final = 1.0
_TURNED_AWAY: Final = frozenset({429, 503})
_LAST_ANSWERS_S: Final = 15.0
"""How long those who wait for an answer at the end still get it."""


class Crowd:
    """All users, and what they have to tell."""

    def __init__(self, plan: CrowdPlan) -> None:
        self._plan, self._began = plan, time.monotonic()
        self.told = Told(users=0)
        self.users = 0

    async def play(self) -> None:
        """All groups, from beginning to end."""
        async with asyncio.TaskGroup() as groups:
            for group in self._plan.groups:
                groups.create_task(_Users(self, group, self._plan.url, self._began).play())

    def take_told(self) -> Told:
        """What there is to tell, once."""
        told, self.told = self.told, Told(users=self.users)
        told.users = self.users
        return told


class _Users:
    """Those of one group."""

    def __init__(self, crowd: Crowd, group: Group, url: str, began: float) -> None:
        self._crowd, self._group, self._url, self._began = crowd, group, url, began
        errands = read_errands(group.errands)
        self._errands = _forever(errands) if group.repeats else iter(enumerate(errands))
        self._wanted = 0
        self._is_over = asyncio.Event()

    async def play(self) -> None:
        """Let users come and go as the stages say."""
        users: list[asyncio.Task[None]] = []
        while (second := time.monotonic() - self._began) < self._group.ends_s:
            self._wanted = self._group.users_at(second)
            users = [one for one in users if not one.done()]
            for number in range(len(users), self._wanted):
                users.append(asyncio.create_task(self._live(number)))
            await asyncio.sleep(_STEER_EVERY_S)
        self._wanted = 0
        self._is_over.set()
        if users:
            _, late = await asyncio.wait(users, timeout=_LAST_ANSWERS_S)
            for one in late:
                one.cancel()
            await asyncio.gather(*users, return_exceptions=True)

    async def _live(self, number: int) -> None:
        """One user, until there are too many."""
        self._crowd.users += 1
        connection = Connection(self._url)
        try:
            while number < self._wanted and (taken := next(self._errands, None)) is not None:
                await self._do(connection, *taken)
                await self._pause(self._group.think_s)
        finally:
            self._crowd.users -= 1
            connection.close()

    async def _do(self, connection: Connection, index: int, errand: Errand) -> None:
        """Until it is taken or refused, or the time is over."""
        ending, is_unknown, tries = "unknown", False, 0
        for tries in count(1):
            try:
                answer = await self._send(connection, errand)
            except asyncio.CancelledError:
                self._note(index, "unknown", tries)
                raise
            if answer is None:
                is_unknown, wait_s = True, _UNANSWERED_PAUSE_S
            elif answer.status in _TURNED_AWAY and errand.method != "GET":
                wait_s = float(answer.headers.get("retry-after", "1"))
            else:
                ending = "taken" if answer.status < 300 or errand.method == "GET" else "refused"
                break
            if not await self._pause(wait_s):
                ending = "unknown" if is_unknown else "given up"
                break
        self._note(index, ending, tries)

    async def _send(self, connection: Connection, errand: Errand) -> Answer | None:
        """One request; None if nothing is known about it."""
        headers = dict(self._group.headers[errand.who])
        if errand.body:
            headers["content-type"] = "application/json"
        if errand.key:
            headers["idempotency-key"] = errand.key
        began = time.monotonic()
        answer: Answer | None = None
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                answer = await connection.send(
                    errand.method, errand.path, headers, errand.body.encode()
                )
        except (Unanswered, TimeoutError):
            connection.close()
        ms = 1000 * (time.monotonic() - began)
        status = 0 if answer is None else answer.status
        self._crowd.told.samples.append(Sample(errand.name, began, ms, status))
        return answer

    async def _pause(self, seconds: float) -> bool:
        """Wait; False if the time is over first."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_over.wait()
        except TimeoutError:
            return True
        return False

    def _note(self, index: int, ending: str, tries: int) -> None:
        self._crowd.told.done.append(Done(self._group.name, index, ending, tries))


def _forever(errands: list[Errand]) -> Iterator[tuple[int, Errand]]:
    while True:
        yield from enumerate(errands)


async def _tick(crowd: Crowd) -> None:
    """The empty loop."""
    while True:
        due = time.monotonic() + _TICK_S
        await asyncio.sleep(_TICK_S)
        crowd.told.lags_ms.append(1000 * (time.monotonic() - due))


async def _tell(crowd: Crowd) -> None:
    while True:
        await asyncio.sleep(_TELL_EVERY_S)
        _write(crowd.take_told())


def _write(told: Told) -> None:
    sys.stdout.write(f"{told.to_json()}\n")
    sys.stdout.flush()


async def _play(plan: CrowdPlan) -> None:
    crowd = Crowd(plan)
    beside = [asyncio.create_task(_tick(crowd)), asyncio.create_task(_tell(crowd))]
    try:
        await crowd.play()
    finally:
        for one in beside:
            one.cancel()
    _write(crowd.take_told())


def _end_with_input() -> None:
    while os.read(sys.stdin.fileno(), 1 << 16):
        pass
    os._exit(1)  # whoever started it is gone


def main() -> int:
    """Play the plan that the input holds."""
    plan = CrowdPlan.from_json(sys.stdin.buffer.readline().decode())
    threading.Thread(target=_end_with_input, daemon=True).start()
    uvloop.run(_play(plan))
    return 0


if __name__ == "__main__":
    sys.exit(main())
