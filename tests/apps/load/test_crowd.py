"""Virtual users in their own process, against a server that turns them away and cuts them off."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from apps.load.crowd import Seen, send_crowd
from apps.load.crowd_plan import CrowdPlan, Errand, Group, Stage, write_errands
from apps.sandbox.stand_in import CutOff, serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


class Server:
    """Answers the first request of each errand as its path says, and takes the second one."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: Counter[str] = Counter()
        self.shown: set[str] = set()

    async def answer(self, request: Request) -> Response:
        path, kind = request.url.path, request.path_params["kind"]
        self.asked[path] += 1
        self.shown.add(request.headers["authorization"])
        if kind == "refused":
            return JSONResponse({}, 409)
        if kind != "taken" and self.asked[path] == 1:
            return CutOff() if kind == "cut" else JSONResponse({}, 503, {"retry-after": "0"})
        return JSONResponse({"n": self.asked[path]}, 202)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    one = Server()
    http = Starlette(routes=[Route("/{kind}/{n}", one.answer, methods=["POST"])])
    async with serving(http) as url:
        one.url = url
        yield one


async def sent(server: Server, path: Path, kinds: list[str], users: int = 3) -> Seen:
    errands = [
        Errand("errand", "POST", f"/{kind}/{n}", n % 2, "{}") for n, kind in enumerate(kinds)
    ]
    group = Group(
        name="users",
        stages=(Stage(0.5, users), Stage(3.0, users)),
        errands=write_errands(path / "errands", errands),
        headers=({"authorization": "Bearer a"}, {"authorization": "Bearer b"}),
        think_s=0.0,
    )
    return await send_crowd(CrowdPlan(url=server.url, groups=(group,)), lambda _: None)


async def test_each_errand_is_taken_once(server: Server, tmp_path: Path):
    seen = await sent(server, tmp_path, ["taken"] * 20)
    assert seen.indexes("users", "taken") == set(range(20))
    assert set(server.asked.values()) == {1}
    assert server.shown == {"Bearer a", "Bearer b"}
    assert seen.lags_ms


async def test_who_is_turned_away_tries_again(server: Server, tmp_path: Path):
    seen = await sent(server, tmp_path, ["later"] * 6)
    assert seen.indexes("users", "taken") == set(range(6))
    assert seen.turned_away == 6
    assert {one.tries for one in seen.done} == {2}


async def test_an_answer_that_was_cut_off_is_asked_for_again(server: Server, tmp_path: Path):
    seen = await sent(server, tmp_path, ["cut"] * 3)
    assert seen.indexes("users", "taken") == {0, 1, 2}
    assert set(server.asked.values()) == {2}


async def test_a_refusal_is_not_repeated(server: Server, tmp_path: Path):
    seen = await sent(server, tmp_path, ["refused", "taken"])
    assert seen.endings == {"refused": 1, "taken": 1}
    assert set(server.asked.values()) == {1}


def test_users_come_and_go_in_a_straight_line():
    group = Group(
        name="users",
        stages=(Stage(10, 100), Stage(10, 100), Stage(10, 0)),
        errands="",
        headers=(),
        think_s=0,
        begins_s=5,
    )
    at = (0, 5, 10, 15, 20, 25, 30, 35, 40)
    assert [group.users_at(one) for one in at] == [0, 0, 50, 100, 100, 100, 50, 0, 0]
    assert group.ends_s == 35
