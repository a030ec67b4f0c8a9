"""What SQL refuses, because no worker could run it."""

from __future__ import annotations

from typing import Any

import pytest

from faena import Faena
from faena.errors import ArgumentError
from faena.pg import Postgres


@pytest.fixture
async def declared(app: Faena, pg: Postgres) -> Postgres:
    queue = app.queue("work")

    @queue.task
    async def anything(value: Any) -> None: ...

    await pg.outbox.publish()
    return pg


async def _enqueue(pg: Postgres, words: str) -> None:
    async with pg.transaction() as connection:
        await connection.execute(f"SELECT faena.{words}".encode())


def _nested(levels: int) -> str:
    return f"(repeat('[', {levels}) || repeat(']', {levels}))"


async def test_payloads_that_are_nested_too_deeply_are_refused(declared: Postgres) -> None:
    words = "payload must have at most 500 levels, got more"
    with pytest.raises(ArgumentError, match=words):
        await _enqueue(declared, f"enqueue('work', 'anything', exact => {_nested(501)}::json)")
    some = f"('[1,' || {_nested(501)} || ']')::json"
    with pytest.raises(ArgumentError, match=f"item 1 of the list: {words}"):
        await _enqueue(declared, f"enqueue_many('work', 'anything', exact => {some})")
    await _enqueue(declared, f"enqueue('work', 'anything', exact => {_nested(500)}::json)")
    flat = "('[' || repeat('[],', 600) || '[]]')::json"
    await _enqueue(declared, f"enqueue('work', 'anything', exact => {flat})")
