"""What cannot work is refused when it is written, with what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from faena import Escalate, Escalation, Faena, Fallback, Manual
from faena.errors import ConfigError
from faena.resilience.costs import CostReport
from faena.testing import attempt, harness

# -- what belongs to another app -------------------------------------------------------------------


def test_a_task_of_another_app_is_no_fallback(app: Faena) -> None:
    other = Faena("billing")

    @other.queue("people").task
    async def attend(_escalation: Escalation) -> None: ...

    @other.queue("slow").task
    async def answer_later(_text: str) -> None: ...

    async def answer(_text: str) -> None: ...

    queue = app.queue("answers")
    words = rf"fallback of task answer must be a task of app {app.name}, got %s of another app, bil"
    given = ((answer_later, "slow/answer_later"), (Escalate(attend), "people/attend"))
    for fallback, name in given:
        for one in (fallback, Fallback(fallback, after="1s")):
            with pytest.raises(ConfigError, match=words % name) as caught:
                queue.task(fallback=one)(answer)
            assert caught.value.field == "fallback"
    assert not queue.tasks


@pytest.mark.parametrize("name", ["afip", "other"])
async def test_an_upstream_of_another_app_is_refused_wherever_one_is_given(
    app: Faena, name: str
) -> None:
    app.upstream("afip")
    foreign = Faena("billing").upstream(name)

    @app.queue("q").task
    async def work() -> None: ...

    async def fetch() -> int:
        raise AssertionError("it must not be called")

    words = f"upstream must be one of app {app.name}, got {name} of another app, billing"
    async with harness(app) as h:
        with pytest.raises(ConfigError, match=words):
            await app.cached_read("k", fetch, upstream=foreign)
        with pytest.raises(ConfigError, match=words):
            await h.open_breaker(foreign)
        with pytest.raises(ConfigError, match=words):
            await h.spend(foreign, "1 USD")
        with pytest.raises(ConfigError, match="refused must be upstreams of app"):
            await attempt(work, refused=[foreign])
        assert [one.name for one in await app.upstream_views()] == ["afip"]


async def test_a_breaker_that_all_tenants_share_is_not_opened_for_one(app: Faena) -> None:
    afip = app.upstream("afip")
    async with harness(app) as h:
        with pytest.raises(ConfigError, match="all tenants share the breaker of afip, got 'acme'"):
            await h.open_breaker(afip, tenant="acme")
        assert (await afip.view()).state == "closed"


# -- payloads of fallbacks -------------------------------------------------------------------------


@dataclass
class Message:
    phone: str
    text: str


class Contact(msgspec.Struct):
    phone: str
    name: str = ""


class Ticket(msgspec.Struct):
    number: int


class Row(msgspec.Struct, array_like=True):
    phone: str


class Model(BaseModel):
    phone: str


@pytest.mark.parametrize(
    ("given", "wanted", "why"),
    [
        (int, str, "it takes str, and the task int"),
        (str, int, "it takes int, and the task str"),
        (float, int, "it takes int, and the task float"),
        (Message, str, "it takes str, and the task Message"),
        (list[int], dict[str, int], "it takes dict"),
        (Message, Ticket, "it takes Ticket, and Message has no number"),
        (Message, Row, "it takes Row, and the task Message"),
        (Model, int, "it takes int, and the task Model"),
    ],
)
def test_a_task_that_cannot_read_the_payload_is_no_fallback(
    app: Faena, given: Any, wanted: Any, why: str
) -> None:
    queue = app.queue("answers")

    async def other(_payload: Any) -> None: ...

    async def answer(_payload: Any) -> None: ...

    other.__annotations__["_payload"], answer.__annotations__["_payload"] = wanted, given
    with pytest.raises(ConfigError, match=rf"must take the task's payload: {why}"):
        queue.task(fallback=queue.task(other))(answer)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (int, float),
        (Message, Message),
        (Message, Contact),
        (Message, dict[str, str]),
        (dict[str, str], Message),
        (Model, Message),
        (Message, Model),
        (str, Any),
        (Any, str),
        (str, int | str),
        (int | None, int),
    ],
)
def test_a_task_that_may_read_the_payload_is_a_fallback(
    app: Faena, given: Any, wanted: Any
) -> None:
    queue = app.queue("answers")

    async def other(_payload: Any) -> None: ...

    async def answer(_payload: Any) -> None: ...

    other.__annotations__["_payload"], answer.__annotations__["_payload"] = wanted, given
    queue.task(fallback=queue.task(other))(answer)


# -- functions -------------------------------------------------------------------------------------


async def test_run_sync_refuses_a_coroutine_function(app: Faena) -> None:
    afip = app.upstream("afip")

    async def ask() -> int:
        return 1

    with pytest.raises(ConfigError, match=r"write `await afip.run\(…\)`"):
        afip.run_sync(ask)


class _Service:
    def __call__(self) -> None: ...


def _generated() -> Any:
    yield 1


async def _streamed() -> Any:
    yield 1


@pytest.mark.parametrize("given", [7, "text", _Service, _Service(), _generated, _streamed])
def test_only_functions_are_calls_of_an_upstream(app: Faena, given: Any) -> None:
    afip = app.upstream("afip")
    with pytest.raises(ConfigError, match="upstream afip must be a function that returns"):
        afip(given)
    with pytest.raises(ConfigError, match="upstream afip must be a function that returns"):
        afip.with_fallback(print)(given)


def test_a_task_is_no_call_of_an_upstream(app: Faena) -> None:
    afip = app.upstream("afip")

    @app.queue("q").task
    async def work() -> None: ...

    with pytest.raises(ConfigError, match=r"a task names its upstreams: @queue.task\(upstreams"):
        afip(work)


def test_functions_of_all_kinds_are_calls(app: Faena) -> None:
    afip = app.upstream("afip")
    for function in (print, partial(print, "a"), _Service().__call__, lambda: None):
        afip(function)


@pytest.mark.parametrize("check", [lambda: None, print], ids=["plain", "builtin"])
def test_a_check_that_is_no_coroutine_function_is_refused(app: Faena, check: Any) -> None:
    app.feature("voice")
    with pytest.raises(ConfigError, match="health check must be a coroutine function"):
        app.health_check("voice")(check)


def test_a_check_that_needs_an_argument_is_refused(app: Faena) -> None:
    app.feature("voice")

    async def asks(_client: object) -> bool:
        return True

    async def may_be_asked(_client: object = None, *, deep: bool = False) -> bool:
        return deep

    with pytest.raises(ConfigError, match="that takes no argument, got"):
        app.health_check("voice")(asks)  # pyright: ignore[reportArgumentType] - wrong on purpose
    app.health_check("voice")(may_be_asked)


def test_a_daily_report_takes_a_cost_report(app: Faena) -> None:
    async def of_text(_report: str) -> None: ...

    async def of_report(_report: CostReport) -> None: ...

    async def of_either(_report: CostReport | None) -> None: ...

    async def of_anything(_report) -> None: ...  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]

    with pytest.raises(ConfigError, match="async function that takes a CostReport"):
        app.daily_cost_report()(of_text)  # pyright: ignore[reportArgumentType] - wrong on purpose
    for function in (of_report, of_either, of_anything):
        app.daily_cost_report()(function)


@pytest.mark.parametrize("status", [9999, 99, 600, 0, -1, True])
def test_sorting_is_by_statuses_that_exist(app: Faena, status: int) -> None:
    with pytest.raises(ConfigError, match=r"HTTP status \(100 to 599\), got"):
        app.upstream("afip", sorting={status: "permanent"})


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda app: app.daily_cost_report(tz="UTC"), "daily_cost_report option .*'tz'.*timezone"),
        (lambda app: app.upstream("a").call(tennant="x"), "call option .*'tennant'.*tenant"),
        (lambda _: Fallback(), "fallback to must be given"),
        (lambda _: Fallback(after="1s"), "fallback to must be given"),
        (lambda _: Manual(), "manual text must be given"),
        (lambda _: Escalate(), "escalate to must be given"),
    ],
)
def test_wrong_and_missing_arguments_are_named(app: Faena, call: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        call(app)
