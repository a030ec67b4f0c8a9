"""Fallbacks that could loop, or could not be used, are refused when they are declared."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from faena import Escalate, Escalation, Faena, Fallback, Manual
from faena.errors import ConfigError


class Reply(msgspec.Struct):
    text: str


def _takes_payload(_payload: str) -> None: ...


@pytest.mark.parametrize(
    ("fallback", "words"),
    [
        (7, "must be a function, a task"),
        (Manual, "must be a function, a task"),
        (_takes_payload, "must take no payload"),
        (Escalate(7), "must be a function, a task"),
        (lambda a, b, c: a + b + c, "must take a payload, a job, both or none"),
    ],
)
def test_a_fallback_that_cannot_be_used_is_refused(
    app: Faena, fallback: object, words: str
) -> None:
    queue = app.queue("answers")

    async def answer() -> None: ...

    with pytest.raises(ConfigError, match=words):
        queue.task(fallback=fallback)(answer)  # pyright: ignore[reportArgumentType] - wrong on purpose


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Manual(""), "manual text must say"),
        (lambda: Fallback(print, after="soon"), "fallback after must be"),
        (lambda: Fallback(print, when="never"), "fallback when must be"),  # pyright: ignore[reportArgumentType] - wrong on purpose
        (lambda: Fallback(print, after="1s", when="exhausted"), "after must not be given"),
        (lambda: Fallback(Fallback(print)), "must not have a fallback"),
        (lambda: Escalate(print, instructions="x" * 2001), "instructions must be"),
    ],
)
def test_terms_that_make_no_sense_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()


def test_a_fallback_has_no_fallback_and_no_upstream_of_its_task(app: Faena) -> None:
    openai = app.upstream("openai")
    queue = app.queue("answers")

    @queue.task(fallback=Manual("by hand"))
    async def has_one() -> None: ...

    @queue.task(upstreams=[openai])
    async def calls_it(_escalation: Escalation) -> None: ...

    @queue.task
    async def takes_text(_text: str) -> None: ...

    @openai.with_fallback(lambda: None)
    async def guarded() -> None: ...

    async def answer() -> None: ...

    with pytest.raises(ConfigError, match="must not have a fallback of its own"):
        queue.task(name="a", fallback=has_one)(answer)
    with pytest.raises(ConfigError, match="must not have a fallback of its own"):
        queue.task(name="a", fallback=guarded)(answer)
    with pytest.raises(ConfigError, match="must not call the same upstream, openai"):
        queue.task(name="a", upstreams=[openai], fallback=Escalate(calls_it))(answer)
    with pytest.raises(ConfigError, match="must be a task that takes an Escalation"):
        queue.task(name="a", fallback=Escalate(takes_text))(answer)
    with pytest.raises(ConfigError, match="must take no payload"):
        queue.task(name="a", fallback=takes_text)(answer)
    with pytest.raises(ConfigError, match="jobs of a batch share one call"):
        queue.batch(size=2, name="b", fallback=Manual("by hand"))(_batch)
    for given in (guarded, has_one, Manual("by hand")):
        with pytest.raises(ConfigError, match="the fallback of a call must be a function"):
            openai.with_fallback(given)  # pyright: ignore[reportArgumentType] - wrong on purpose


def test_an_answer_must_be_a_result_of_the_task(app: Faena) -> None:
    queue = app.queue("answers")

    @queue.task
    async def attend(_escalation: Escalation) -> None: ...

    async def answer() -> Reply:
        return Reply("")

    with pytest.raises(ConfigError, match="escalate answer must be a result of task answer"):
        queue.task(fallback=Escalate(attend, answer=3))(answer)


async def _batch(_payloads: list[str]) -> None: ...
