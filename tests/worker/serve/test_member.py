"""A worker process as its server sees it: late, silent, hostile, dead."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from faena.telemetry.measured import Measured
from faena.worker.serve import channel, member
from faena.worker.serve.channel import About, Ask
from faena.worker.serve.diagnosis import examine
from faena.worker.serve.endpoints import Endpoints
from faena.worker.serve.member import Member
from faena.worker.serve.reporter import Reporter, from_environ
from faena.worker.serve.request import Request
from faena.worker.serve.team import Team
from faena.worker.serve.totals import Totals
from tests._support.eventually import eventually

ABOUT = About("shop", 50, False)
TAKE = ("work", "take")


class Pair:
    """Both ends of a channel."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.totals = Totals()
        self.member = Member(ours, self.totals, 71)

    def team(self) -> Team:
        return Team("serving", [self.member], 1)


@pytest.fixture
async def pair(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    monkeypatch.setattr(member, "_SLICE_S", 0.01)
    pair = Pair()
    await eventually(lambda: pair.member._channel)
    yield pair
    pair.theirs.close()
    await pair.member.end()


async def test_an_answer_belongs_to_its_question(pair: Pair) -> None:
    async def echo(ask: Ask) -> bytes:
        await asyncio.sleep(0.001 * (ask.number % 3))
        return str(ask.number).encode()

    async def fail(_: Ask) -> bytes:
        raise ValueError("no luck")

    makers: Any = {"number": echo, "broken": fail}
    reporting = asyncio.create_task(Reporter(pair.theirs, ABOUT, makers, {}).run())
    asked = (pair.member.ask("number", 60, all_of={}) for _ in range(20))
    assert [int(one or 0) for one in await asyncio.gather(*asked)] == list(range(1, 21))
    assert await pair.member.ask("unknown", 60, all_of={}) is None
    assert await pair.member.ask("broken", 60, all_of={}) is None
    assert pair.member.about == ABOUT
    reporting.cancel()
    await asyncio.wait({reporting})


async def test_what_was_measured_last_is_told_when_the_worker_ends(pair: Pair) -> None:
    measured = {TAKE: Measured()}
    reporting = asyncio.create_task(Reporter(pair.theirs, ABOUT, {}, measured).run())
    await eventually(lambda: TAKE in pair.totals.together())
    measured[TAKE].started = 7
    reporting.cancel()
    await asyncio.wait({reporting})
    await eventually(lambda: pair.member.has_left)
    await pair.member.end()
    assert pair.totals.together()[TAKE].started == 7


async def test_a_process_that_has_ended_its_jobs_is_not_asked_any_more(pair: Pair) -> None:
    reporting = asyncio.create_task(Reporter(pair.theirs, ABOUT, {}, {}).run())
    await eventually(lambda: pair.member.about)
    reporting.cancel()
    await eventually(lambda: pair.member.has_left)
    assert (await examine(pair.team())).status == "down"
    seen = await examine(Team("stopping", [pair.member], 1))
    assert (seen.is_ok, seen.status, seen.problems) == (True, "stopping", [])


@pytest.mark.parametrize(
    "said",
    [
        b"\xff" * 100,
        b"\x00\x00\x00\x05hello",
        b"\x00\x00\x00\x00",
        (9).to_bytes(4) + msgspec.msgpack.encode(["told", 7]),
        (1 << 31).to_bytes(4) + b"x",
        b"\x00\x00",
    ],
)
async def test_a_process_that_says_what_is_no_message_is_silent(pair: Pair, said: bytes) -> None:
    pair.theirs.send(said)
    pair.theirs.shutdown(socket.SHUT_WR)
    await eventually(lambda: pair.member._channel is None)
    with pytest.raises(TimeoutError):
        await pair.member.ask("vitals", 60, all_of={})
    seen = await examine(pair.team())
    assert (seen.is_ok, seen.status) == (False, "silent")


async def test_a_frozen_process_is_not_written_to_without_end(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "_CLOGGED", 1_000)
    much = {("work", "x" * 1_000 + str(number)): Measured() for number in range(1_000)}
    with pytest.raises(TimeoutError):
        await pair.member.ask("metrics", 0.02, all_of=much)
    assert pair.member._channel is not None
    assert pair.member._channel.is_clogged
    before = pair.member._channel._writer.transport.get_write_buffer_size()
    with pytest.raises(TimeoutError):
        await pair.member.ask("metrics", 60, all_of=much)
    assert pair.member._channel._writer.transport.get_write_buffer_size() == before


async def test_clients_that_ask_at_once_share_one_answer(pair: Pair) -> None:
    asked: list[int] = []

    async def count(ask: Ask) -> bytes:
        asked.append(ask.number)
        await asyncio.sleep(0.01)
        return msgspec.msgpack.encode({"status": 200, "body": b"{}", "content_type": "x/y"})

    reporter = Reporter(pair.theirs, ABOUT, {"scaling": count}, {})
    reporting = asyncio.create_task(reporter.run())
    endpoints = Endpoints(pair.team, pair.totals)
    answers = await asyncio.gather(
        *(endpoints.answer(Request("GET", "/scaling")) for _ in range(50))
    )
    assert {(one.status, one.body, one.content_type) for one in answers} == {(200, b"{}", "x/y")}
    assert len(asked) == 1
    reporting.cancel()
    await asyncio.wait({reporting})


@pytest.mark.parametrize("number", ["nine", "-1", "99999"])
def test_a_channel_that_is_none_is_refused(number: str) -> None:
    from faena.errors import ConfigError

    with pytest.raises(ConfigError, match="must be the number of an open socket"):
        from_environ({"FAENA_REPORTS": number})
