"""Flows are drawn, followed, cancelled and run again; groups show their members and callbacks."""

from __future__ import annotations

import re

import pytest

from faena import Faena, Retry
from faena.flows import NodeView
from faena.task import Task
from faena.web.page.graph import graph_of, worst_first
from tests.web.conftest import Browser

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def work(app: Faena) -> Task[str, str]:
    mail = app.queue("mail", retry=Retry.fixed("1s", attempts=1))

    @mail.task
    async def work(word: str) -> str:
        if word == "fail":
            raise ValueError(SCRIPT)
        return word

    return work


def _node(name: str, *after: str, state: str = "waiting", task: str = "work") -> NodeView:
    return NodeView(
        name=name, queue="mail", task=task, job=name, state=state, after=after, outcome=None
    )


def test_nodes_stand_in_layers_behind_what_they_wait_for() -> None:
    graph = graph_of([_node("c", "a", "b"), _node("a"), _node("b", "a"), _node("d")])
    where = {box.title: box for box in graph.boxes}
    assert where["a"].x == where["d"].x < where["b"].x < where["c"].x
    assert where["a"].y != where["d"].y
    assert len(graph.edges) == 3
    assert not graph.is_folded
    assert all(box.x + 180 <= graph.width for box in graph.boxes)
    assert all(box.y + 44 <= graph.height for box in graph.boxes)


def test_a_large_flow_is_folded_by_task_and_layer() -> None:
    many = [_node(f"n{at}", "first", state="completed") for at in range(300)]
    many[7] = _node("n7", "first", state="dead")
    names = [node.name for node in many]
    graph = graph_of([_node("first", task="begin"), *many, _node("last", *names, task="end")])
    assert graph.is_folded
    assert [box.names for box in graph.boxes] == ["begin", "work", "end"]
    (_, middle, _) = graph.boxes
    assert (middle.state, middle.counts) == ("dead", [("dead", 1), ("completed", 299)])
    assert len(graph.edges) == 2
    assert graph.left_out == 0


def test_a_long_chain_is_drawn_as_far_as_there_is_room() -> None:
    chain = [_node("n0"), *(_node(f"n{at}", f"n{at - 1}") for at in range(1, 1_500))]
    graph = graph_of([*reversed(chain)])
    assert len(graph.boxes) == 120
    assert graph.left_out == 1_380
    assert not graph_of([]).boxes


def test_the_worst_nodes_come_first() -> None:
    nodes = [_node("a", state="completed"), _node("b"), _node("c", state="dead")]
    assert [node.name for node in worst_first(nodes)] == ["c", "b", "a"]


async def test_a_flow_that_failed_says_why_and_runs_again(
    app: Faena, work: Task[str, str], browser: Browser
) -> None:
    plan = app.flow("invoice")
    first = plan.add(work.draft("fail"), name="cae")
    plan.add(work.draft("b"), name="pdf", after=[first])
    running = await plan.start()
    await browser.sign_in("a-operator")
    page = await browser.get("/flows")
    assert f'href="/flows/{running.id}"' in page.text
    page = await browser.get(f"/flows/{running.id}")
    assert "It waits for cae." in page.text
    assert "Cancel 2 nodes" in page.text
    await app.run_worker(until_empty=True)
    page = await browser.get(f"/flows/{running.id}")
    assert "cae did not complete, so 1 node was skipped." in page.text
    assert "ValueError" in page.text
    assert SCRIPT not in page.text
    assert "Run 2 nodes again" in page.text
    view = await running.view()
    job = f"/queues/mail/jobs/{view.nodes[0].job}"
    assert f'href="{job}"' in page.text
    assert f'href="/flows/{running.id}#' in (await browser.get(job)).text
    assert "No flow is under way" in (await browser.get("/flows")).text
    assert running.id in (await browser.get("/flows?ended&queue=mail")).text
    queue, flow = running.id.split("/")
    back = f"/flows/{running.id}"
    answer = await browser.post("/do/flows.rerun", queue=queue, flow=flow, back=back)
    assert "runs again" in (await browser.get(answer.headers["location"])).text
    assert await running.state() == "running"
    answer = await browser.post("/do/flows.rerun", queue=queue, flow=flow)
    assert answer.status_code == 409
    await browser.post("/do/flows.cancel", queue=queue, flow=flow)
    assert await running.state() == "cancelled"


async def test_a_large_flow_has_a_page(app: Faena, work: Task[str, str], browser: Browser) -> None:
    plan = app.flow("many")
    first = plan.add(work.draft("a"), name="first")
    for number in range(150):
        plan.add(work.draft("b"), name=f"n{number}", after=[first])
    running = await plan.start()
    await browser.sign_in("a-viewer")
    page = await browser.get(f"/flows/{running.id}")
    assert "150 waiting" in page.text
    assert "drawn as one" in page.text
    assert "flows.cancel" not in page.text


async def test_a_group_shows_its_members_and_callbacks(
    app: Faena, work: Task[str, str], browser: Browser
) -> None:
    async with app.group(on_complete=work.draft("done")) as group:
        await group.enqueue_many(work, ["a", "fail", "c"])
    await browser.sign_in("a-viewer")
    assert group.id in (await browser.get("/flows?kind=groups")).text
    page = await browser.get(f"/groups/{group.id}")
    assert "0 of 3 members have ended" in page.text
    (receipt,) = (await app.queues["mail"].jobs("ready", limit=1)).jobs
    member = await browser.get(f"/queues/mail/jobs/{receipt.id}")
    assert f'href="/groups/{group.id}#' in member.text
    await app.run_worker(until_empty=True)
    page = await browser.get(f"/groups/{group.id}")
    assert "All of its 3 members have ended." in page.text
    (callback,) = re.findall(r'href="(/queues/mail/jobs/[^"]+)"', page.text)
    assert (await browser.get(callback)).status_code == 200
    assert group.id in (await browser.get("/flows?kind=groups&ended")).text


async def test_pages_of_flows_have_each_of_them_once(
    app: Faena, work: Task[str, str], browser: Browser
) -> None:
    made = list[str]()
    for number in range(90):
        plan = app.flow("one", id=f"f{number:02}")
        plan.add(work.draft("a"))
        made.append((await plan.start()).id)
    await browser.sign_in("a-viewer")
    where, found = "/flows", list[str]()
    while where:
        page = await browser.get(where)
        found += re.findall(r'class="name" href="/flows/([^"]+)"', page.text)
        more = re.search(r'href="(\?[^"]*cursor=[^"]*)"', page.text)
        where = f"/flows{more[1].replace('&amp;', '&')}" if more else ""
    assert sorted(found) == made


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/flows?kind=all", 422),
        ("/flows?cursor=x", 422),
        ("/flows?queue=nail", 404),
        ("/flows/mail/none", 404),
        ("/flows/mail/no.ne", 404),
        ("/flows/nail/none", 404),
        ("/groups/mail/none", 404),
        ("/groups/mail/no:ne", 404),
    ],
)
async def test_flows_that_are_not_there_are_not_found(
    work: Task[str, str], browser: Browser, path: str, status: int
) -> None:
    await browser.sign_in("a-viewer")
    assert (await browser.get(path)).status_code == status


async def test_what_makes_no_sense_changes_no_flow(work: Task[str, str], browser: Browser) -> None:
    await browser.sign_in("a-operator")
    for fields in ({"queue": "mail", "flow": "none"}, {"queue": "mail", "flow": "a:b"}):
        assert (await browser.post("/do/flows.cancel", **fields)).status_code == 404
    assert (await browser.post("/do/flows.cancel", queue="mail")).status_code == 422
