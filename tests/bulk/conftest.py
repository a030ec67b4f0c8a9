"""Jobs of an app that something is done to in bulk."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena import Faena
from faena.engine.calls.bulk import SHARD
from faena.inspection.job_query import JobQuery
from faena.task import Task


@pytest.fixture
async def send(app: Faena) -> AsyncIterator[Task[int, None]]:
    mail = app.queue("mail")

    @mail.task
    async def send(number: int) -> None:
        if number < 0:
            raise ConnectionError("the printer is on fire")

    yield send
    await (await app.runtime()).engine.command("DEL", SHARD, "bulks")


def query(text: str) -> JobQuery:
    return JobQuery.parse(text, 0)
