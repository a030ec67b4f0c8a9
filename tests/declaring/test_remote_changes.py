"""Producers whose rules change under way: of another program, or of older code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from faena import Order
from faena.errors import ConfigError
from faena.inspection.audit import audit
from tests._support.remote_producer import Mail, Pair, paired
from tests._support.valkey import Server


@pytest.fixture
async def pair(valkey: Server, namespace: str) -> AsyncIterator[Pair]:
    async with paired(valkey.url, namespace) as pair:
        yield pair


async def test_settings_that_have_changed_are_learnt(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pair.worker().declares()
    send = pair.mail.stub("send", payload=Mail)
    await send.enqueue(Mail(to="1"))
    monkeypatch.setattr("faena.remote._FRESH_S", 0.0)
    await pair.worker(order=Order.TENANT).declares()
    with pytest.raises(ConfigError, match="keeps the order of each tenant"):
        await send.enqueue(Mail(to="2"))
    receipt = await send.enqueue(Mail(to="2"), tenant="acme")
    assert await receipt.handle.state() == "ready"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"order": Order.TENANT}),
        ({"order": Order.TENANT}, {}),
        ({"order": Order.KEY}, {"order": Order.TENANT}),
        ({"order": Order.QUEUE}, {"order": Order.TENANT}),
        ({"fair": False}, {"fair": True, "shards": 3}),
        ({"order": Order.QUEUE}, {"fair": False}),
    ],
    ids=str,
)
async def test_jobs_placed_by_rules_that_have_changed_are_neither_lost_nor_run_twice(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, before: Any, after: Any
) -> None:
    monkeypatch.setattr("faena.remote._FRESH_S", 3600.0)
    await pair.worker(**before).declares()
    send = pair.mail.stub("send", payload=Mail)
    await send.enqueue(Mail(to="0"), tenant="acme", key="k")
    worker = pair.worker(**after)
    await worker.send.enqueue(Mail(to="1"), tenant="acme", key="k")
    old = await send.enqueue(Mail(to="2"), tenant="acme", key="k")  # it has not looked again
    await worker.send.enqueue(Mail(to="3"), tenant="acme", key="k")
    await worker.app.run_worker(until_empty=True)
    assert sorted(mail.to for mail, _ in worker.seen) == ["0", "1", "2", "3"]
    assert await worker.send.handle(old.id).state() == "completed"
    engine = (await worker.app.runtime()).engine
    for shard in (await worker.mail.shards()).jobs:
        assert await audit(engine, shard) == []


async def test_a_process_with_old_code_finds_the_shards_that_new_code_made(pair: Pair) -> None:
    old = pair.worker(fair=False)
    await old.send.enqueue(Mail(to="1"), tenant="acme")
    new = pair.worker(fair=True, shards=3)
    await new.send.enqueue(Mail(to="2"), tenant="acme")
    async with asyncio.timeout(60):
        receipt = await old.send.enqueue(Mail(to="3"), tenant="acme")
    await new.app.run_worker(until_empty=True)
    assert sorted(mail.to for mail, _ in new.seen) == ["1", "2", "3"]
    assert await old.send.handle(receipt.id).state() == "completed"


async def test_many_calls_at_once_look_at_the_settings_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pair.worker().declares()
    send = pair.mail.stub("send", payload=Mail)
    await send.enqueue(Mail(to="1"))
    engine, asked = (await pair.api.runtime()).engine, list[str]()
    command = engine.command

    async def counted(verb: str, *args: Any) -> Any:
        asked.append(verb)
        return await command(verb, *args)

    monkeypatch.setattr(engine, "command", counted)
    pair.mail._read = (await pair.api.runtime(), -3600.0)  # pyright: ignore[reportPrivateUsage]
    await asyncio.gather(*(send.enqueue(Mail(to=str(n))) for n in range(20)))
    assert asked.count("HMGET") == 1
