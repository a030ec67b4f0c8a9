"""`posted`: what has arrived is struck off, and nothing that came later."""

from __future__ import annotations

import pytest

from faena.engine.calls.flows import FlowCalls
from faena.outcomes import Completed
from tests._support.rig import Rig


@pytest.fixture
def mail(rig: Rig) -> FlowCalls:
    return FlowCalls(rig.engine)


async def write(rig: Rig, job: str) -> None:
    await rig.run(job, Completed(), tells="f:other:f:1")


async def test_only_what_was_read_goes(rig: Rig, mail: FlowCalls) -> None:
    await write(rig, "a")
    (first,) = await mail.messages("q", "other")
    await write(rig, "b")
    assert await mail.delivered("q", "other", first.id) == 1
    assert len(await mail.messages("q", "other")) == 1
    assert await mail.addressees("q") == ["other"]


async def test_the_last_letter_takes_the_addressee_along_and_again_is_nothing(
    rig: Rig, mail: FlowCalls
) -> None:
    await write(rig, "a")
    (first,) = await mail.messages("q", "other")
    for _ in range(2):
        assert await mail.delivered("q", "other", first.id) == 0
        assert await mail.addressees("q") == []


async def test_ids_grow_over_an_empty_stream(rig: Rig, mail: FlowCalls) -> None:
    await write(rig, "a")
    (first,) = await mail.messages("q", "other")
    await mail.delivered("q", "other", first.id)
    assert await rig.engine.command("EXISTS", "q", "messages:other") == 1


async def test_where_nothing_was_written_nothing_is_left(rig: Rig, mail: FlowCalls) -> None:
    assert await mail.delivered("q", "nobody", "1-1") == 0
    assert "messages:nobody" not in await rig.dump()
