"""Ids and names of flows and groups: what is accepted works to the end, the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest

from faena import Faena, Job
from faena.errors import ConfigError, JobNotFound
from faena.task import Task
from tests._support.eventually import eventually
from tests.flows.conftest import Working

ODD = [
    "ñandú",
    "a=b",
    "a{b}c",
    "100%",
    "*",
    'a"b',
    "a,b",
    "日本",
    "🙂",
    "a@b",
    "a\\n",
    "-1",
    "x" * 40,
]
BROKEN = ["", " ", "a b", "a\nb", "a:b", "a.b", "x" * 41, "\ud800", "a/b/c", "/a", "a/", "a/b", 7]


class Shop:
    def __init__(self, app: Faena) -> None:
        self.app = app
        self.seen: list[str] = []
        mail = app.queue("mail", concurrency=50)
        self.send: Task[str, str] = mail.task(name="send")(self._send)

    async def _send(self, text: str, job: Job) -> str:
        self.seen.append(text)
        return ",".join(job.parents) or text


@pytest.fixture
def shop(app: Faena) -> Shop:
    return Shop(app)


async def test_a_flow_of_any_accepted_id_and_names_runs_to_its_end(
    shop: Shop, working: Working
) -> None:
    async with working(shop.app):
        for word in ODD:
            plan = shop.app.flow(word, id=word)
            first = plan.add(shop.send.draft(word), name=word)
            plan.add(shop.send.draft("last"), name="last", after=[first])
            flow = await plan.start()
            view = await shop.app.running_flow(flow.id).wait("20s")
            assert (view.id, view.name, view.state) == (f"mail/{word}", word, "completed")
            assert await (await flow.node("last")).result("60s") == word


async def test_a_group_of_any_accepted_id_calls_back(shop: Shop, working: Working) -> None:
    async with working(shop.app):
        for word in ODD:
            done = shop.send.draft(f"done {word}")
            async with shop.app.group(id=word, on_complete=done) as group:
                await group.enqueue_many(shop.send, ["a", "b"])
            view = await shop.app.group(id=group.id).wait("20s")
            assert (view.id, view.total, view.completed) == (f"mail/{word}", 2, 2)
        await eventually(lambda: {f"done {word}" for word in ODD} <= set(shop.seen))


@pytest.mark.parametrize("given", BROKEN)
def test_an_id_that_would_break_others_is_refused(shop: Shop, given: Any) -> None:
    with pytest.raises(ConfigError, match="id"):
        shop.app.flow(id=given)
    with pytest.raises(ConfigError, match="id"):
        shop.app.group(id=given, on_complete=shop.send.draft("x"))


@pytest.mark.parametrize(
    "given", ["", "a", "a/", "/a", "a b/c", "mail/a/b", "mail/a:b", "mail/0/x", "{x}/a", 7]
)
def test_a_running_flow_is_named_by_a_queue_and_an_id(shop: Shop, given: Any) -> None:
    with pytest.raises(ConfigError):
        shop.app.running_flow(given)


async def test_a_group_that_has_begun_is_found_at_a_queue_of_the_app_only(shop: Shop) -> None:
    with pytest.raises(JobNotFound):
        await shop.app.group(id="mail/nobody").view()
    with pytest.raises(
        ConfigError, match="must be without a slash, or queue/id of an existing group, got 'a/b'"
    ):
        shop.app.group(id="a/b")
