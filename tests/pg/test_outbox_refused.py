"""What SQL refuses, because no worker could run it."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from faena import Faena
from faena.errors import ArgumentError
from faena.pg import Postgres


@pytest.fixture
async def declared(app: Faena, pg: Postgres) -> Postgres:
    queue = app.queue("work")

    @queue.task
    async def anything(value: Any) -> None: ...

    @queue.task
    async def count(items: list[int]) -> None: ...

    await pg.outbox.publish()
    return pg


async def _enqueue(pg: Postgres, words: str, *given: object) -> None:
    async with pg.transaction() as connection:
        await connection.execute(f"SELECT faena.{words}".encode(), given or None)


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


async def test_a_number_with_a_point_is_no_int(declared: Postgres) -> None:
    """The job would be dead at once: a worker reads 2.0 as a float."""
    words = r"payload must be that of work/count, got 1 bad field: \[1\] must be a whole number"
    for given in ("'[1, 2.0]'", "jsonb_build_array(1, 4 * 0.50)", "exact => '[1, 2.0]'"):
        with pytest.raises(ArgumentError, match=words):
            await _enqueue(declared, f"enqueue('work', 'count', {given})")
    with pytest.raises(ArgumentError, match=f"item 1 of the list: {words}"):
        await _enqueue(declared, "enqueue_many('work', 'count', '[[1], [1, 2.0]]')")
    await _enqueue(declared, "enqueue('work', 'count', '[1, 2e2]')")
    await _enqueue(declared, "enqueue('work', 'anything', '2.0')")


@pytest.mark.parametrize("name", ["", "a b", "a\n", "x" * 129])
async def test_a_header_has_a_name_that_the_broker_takes(declared: Postgres, name: str) -> None:
    words = "enqueue('work', 'anything', '1', headers => %s)"
    with pytest.raises(ArgumentError, match="header name must have 1 to 128 printable"):
        await _enqueue(declared, words, Jsonb({name: "a"}))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("delay => '1h', expires => now() + interval '1 min'", "expires must be after the job"),
        ("at => '2030-01-01', expires => '2030-01-01'", "expires must be after the job becomes"),
        ("headers => (SELECT jsonb_object_agg(n, '') FROM generate_series(1, 65) n)", "at most 64"),
        ("headers => jsonb_build_object('a', repeat('x', 4097))", "of at most 4096 characters"),
    ],
)
async def test_options_that_the_broker_refuses_are_refused_at_once(
    declared: Postgres, options: str, words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        await _enqueue(declared, f"enqueue('work', 'anything', '1', {options})")
    with pytest.raises(ArgumentError, match=words):
        await _enqueue(declared, f"enqueue_many('work', 'anything', '[1]', {options})")


async def test_a_job_may_have_expired_when_it_is_enqueued(declared: Postgres) -> None:
    await _enqueue(declared, "enqueue('work', 'anything', '1', expires => '2020-01-01')")


@pytest.mark.parametrize("option", ["tenant", "key", "id"])
@pytest.mark.parametrize(
    "sign", ["\u00a0", "\u00ad", "\u200b", "\u2028", "\u2060", "\ufeff", "\x85"]
)
async def test_a_label_has_no_sign_that_cannot_be_seen(
    declared: Postgres, option: str, sign: str
) -> None:
    assert not sign.isprintable()
    with pytest.raises(ArgumentError, match=f"{option} must have 1 to 128 printable"):
        await _enqueue(declared, f"enqueue('work', 'anything', '1', {option} => %s)", f"a{sign}b")
    await _enqueue(declared, f"enqueue('work', 'anything', '1', {option} => %s)", "añ日💥b")
