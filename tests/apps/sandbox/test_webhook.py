"""Webhooks are told in the background, again until they are taken, and never without bound."""

from __future__ import annotations

import asyncio
import socket

import pytest
from apps.sandbox.ledger import Ledger
from apps.sandbox.webhook import Courier, Full, Notifier, Webhook

from tests._support.eventually import eventually
from tests.apps.sandbox.conftest import Driver, Inbox


async def test_attempts_are_made_until_one_is_taken() -> None:
    courier, answers = Courier(pauses=(0.0,) * 5), [False, False, True]

    async def attempt() -> bool:
        return answers.pop(0)

    courier.tell(attempt)
    await eventually(lambda: courier.waiting == 0)
    assert (answers, courier.taken, courier.given_up) == ([], 1, 0)


async def test_what_nobody_takes_is_given_up() -> None:
    courier, made = Courier(pauses=(0.0, 0.0)), list[int]()

    async def attempt() -> bool:
        made.append(1)
        return False

    courier.tell(attempt)
    await eventually(lambda: courier.waiting == 0)
    assert (len(made), courier.taken, courier.given_up) == (3, 0, 1)


async def test_no_more_wait_than_may_and_few_are_told_at_once() -> None:
    courier, under_way, gate = Courier(at_once=2, most=3), list[int](), asyncio.Event()

    async def attempt() -> bool:
        under_way.append(1)
        await gate.wait()
        return True

    for _ in range(3):
        courier.tell(attempt)
    with pytest.raises(Full):
        courier.tell(attempt)
    await eventually(lambda: len(under_way) == 2)
    gate.set()
    await eventually(lambda: courier.waiting == 0)
    assert courier.taken == 3


async def test_closing_gives_up_what_waits() -> None:
    courier = Courier(pauses=(3600.0,))

    async def attempt() -> bool:
        return False

    courier.tell(attempt)
    await courier.close()
    assert (courier.waiting, courier.taken) == (0, 0)


async def test_a_receiver_that_does_not_answer_holds_up_nobody(
    driver: Driver,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections are made, and no more
        port = silent.getsockname()[1]
        await driver.tell(whatsapp=f"http://127.0.0.1:{port}/")
        for _ in range(60):  # more than are told at once
            await driver.act("whatsapp/text", sender="5491144440000", body="hola")
        assert (await driver.get("webhooks"))["waiting"] == 60


async def test_each_attempt_is_noted_with_what_came_of_it(inbox: Inbox) -> None:
    ledger = Ledger()
    notifier = Notifier(ledger, within_s=30, taken=(200, 201))
    inbox.statuses = [201, 404]
    for url in (inbox.url, inbox.url, "http://127.0.0.1:1/"):
        await notifier.send(Webhook(url=url, headers={}, body=b"{}"))
    assert [one.outcome for one in ledger.entries] == ["ok", "refused", "unanswered"]
