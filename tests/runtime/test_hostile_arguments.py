"""Arguments that no program means to give are refused before anything is sent.

An int of more digits than Python writes used to end the whole process: the packer of commands does
not survive it. A process of its own would be needed to see that; here it would be pytest's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from faena import Faena, Queue
from faena.errors import ConfigError, PayloadError

HOSTILE: dict[str, Any] = {
    "giant": 10**5000,
    "number": 5,
    "float": 1.5,
    "bytes": b"x",
    "none": None,
    "list": ["x"],
    "dict": {"a": 1},
    "surrogate": "\ud800",
    "line": "a\nb",
}

KEY = "k" * 20

CALLS: dict[str, Callable[[Faena, Queue, Any], Awaitable[Any]]] = {
    "pause": lambda _, mail, value: mail.pause(reason=value),
    "resume": lambda _, mail, value: mail.resume(reason=value),
    "begin": lambda _, mail, value: mail.idempotency.begin(KEY, owner=value),
    "complete": lambda _, mail, value: mail.idempotency.complete(KEY, 1, owner=value),
    "fail": lambda _, mail, value: mail.idempotency.fail(KEY, "no", owner=value),
    "clear": lambda _, mail, value: mail.idempotency.clear(KEY, owner=value),
    "schedule": lambda app, _, value: app.schedules.get(value),
    "schedule next": lambda app, _, value: app.schedules.next(value),
    "schedule pause": lambda app, _, value: app.schedules.pause(value),
    "schedule resume": lambda app, _, value: app.schedules.resume(value),
    "schedule edit": lambda app, _, value: app.schedules.edit(value, every="1h"),
    "schedule reset": lambda app, _, value: app.schedules.reset(value),
    "schedule run": lambda app, _, value: app.schedules.run(value),
    "schedule remove": lambda app, _, value: app.schedules.remove(value),
    "reset": lambda _, mail, value: mail.reset(value),
    "jobs": lambda _, mail, value: mail.jobs(value),
    "newest": lambda _, mail, value: mail.jobs("ready", is_newest_first=value),
}


@pytest.mark.parametrize("call", CALLS)
async def test_an_argument_of_another_kind_is_refused_by_what_would_be_valid(
    app: Faena, call: str
) -> None:
    mail = app.queue("mail")
    for value in HOSTILE.values():
        with pytest.raises(ConfigError):
            await CALLS[call](app, mail, value)


@pytest.mark.parametrize("decide", ["retry_as_new", "discard", "resolve"])
async def test_the_reason_of_a_decision_can_be_written(app: Faena, decide: str) -> None:
    app.queue("mail")
    for value in (10**5000, 5, b"x", ["x"], "\ud800"):
        with pytest.raises(ConfigError, match="reason must be a UTF-8 string of at most"):
            await getattr(app.dead_letters, decide)("mail", "j1", reason=value)


async def test_a_result_that_json_has_not_is_refused_as_a_payload(app: Faena) -> None:
    mail = app.queue("mail")
    await mail.idempotency.begin(KEY, owner="me")
    for value in (object(), "\ud800", 1j):
        with pytest.raises(PayloadError, match="result must be a JSON value"):
            await mail.idempotency.complete(KEY, value, owner="me")
