"""Who asks for what a command does: the events say so."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from faena import Event, Faena, Retry
from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("broker")

app = Faena("counter", "redis://127.0.0.1:1/0")
mail = app.queue("mail", retry=Retry.never())
TARGET = f"{__name__}:app"


@mail.task
async def send(card: int) -> int:
    return card


def enqueue(number: int) -> list[str]:
    async def work() -> list[str]:
        async with app:
            return [one.id for one in await send.enqueue_many(range(number), delay="1h")]

    return asyncio.run(work())


def told(number: int) -> list[Event]:
    """So many events after the first ones, which nobody asked for by hand."""

    async def read() -> list[Event]:
        found: list[Event] = []
        async with app, aclosing(app.events("mail", since="start")) as events:
            async for event in events:
                found += [] if event.name == "enqueued" else [event]
                if len(found) == number:
                    break
        return found

    return asyncio.run(read())


def test_commands_say_who_asks_for_what_they_do(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = enqueue(2)
    monkeypatch.setenv("FAENA_BY", "eva")
    for words in (
        ["change", "mail", first, "--delay", "2h"],
        ["promote", "mail", first, "--by", "ana"],
        ["cancel", "mail", first],
        ["rerun", "mail", first],
        ["remove", "mail", second, "--yes"],
        ["pause", "mail"],
        ["resume", "mail"],
        ["configure", "mail", "max_running=5"],
        ["reset", "mail", "max_running"],
        ["drain", "mail", "--yes"],
    ):
        code, _, err = cli(*words)
        assert (code, err) == (0, ""), words
    events = told(10)
    names = ["changed", "promoted", "cancelled", "rerun", "removed", "paused", "resumed"]
    assert [one.name for one in events] == [*names, "configured", "reset", "cleaned"]
    assert [one.by for one in events] == ["eva", "ana", *["eva"] * 8]


def test_an_enqueue_says_who_asks_for_it_only_where_that_is_given(cli: Cli) -> None:
    assert cli("enqueue", "mail/send", "1", "--id", "one", "--by", "ana")[0] == 0
    assert cli("enqueue", "mail/send", "1", "--id", "two")[0] == 0

    async def headers() -> list[dict[str, str]]:
        async with app:
            views = [await mail.handle(name).view() for name in ("one", "two")]
            return [view.headers for view in views if view]

    assert asyncio.run(headers()) == [{"faena-by": "ana"}, {}]


def test_who_asks_must_be_a_label(cli: Cli) -> None:
    code, _, err = cli("drain", "mail", "--yes", "--by", "two words")
    assert code == 2
    assert "by must be 1 to" in err
