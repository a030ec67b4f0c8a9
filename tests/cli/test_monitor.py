"""The monitor: what it shows, and what its keys do, on a real broker and a terminal of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from faena import Alerts, Faena, Retry
from faena.cli.monitor.screen import Asking, Monitor, Told
from faena.cli.root import main
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import serving

SCRIPT = "[bold]not markup[/bold] \x1b[31m"


@pytest.fixture
async def shop(server: Server) -> AsyncIterator[Faena]:
    app = Faena("shop", server.url, namespace="monitor", alerts=Alerts())
    mail = app.queue("mail", retry=Retry.never())
    app.upstream("afip")

    @mail.task
    async def send(number: int) -> None:
        if number == 2:
            raise ConnectionError(SCRIPT)

    @app.cron("0 2 * * *")
    async def nightly() -> None: ...

    yield app
    await app.close()


@asynccontextmanager
async def shown(app: Faena) -> AsyncIterator[Pilot[None]]:
    monitor = Monitor(app, by="ana", every_s=0.05)
    async with monitor.run_test(size=(140, 40)) as pilot:
        yield pilot


def rows(pilot: Pilot[None]) -> list[list[str]]:
    table = pilot.app.screen_stack[0].query_one("#rows", DataTable)
    return [[str(cell) for cell in table.get_row(key)] for key in table.rows]


def text(pilot: Pilot[None], name: str) -> str:
    return str(pilot.app.screen_stack[0].query_one(name, Static).content)


async def test_queues_are_shown_and_paused_by_a_key_after_a_question(shop: Faena) -> None:
    await shop.queues["mail"].tasks["send"].enqueue_many([1, 1], tenant="acme")
    async with shown(shop) as pilot:
        await eventually(lambda: rows(pilot)[0][:2] == ["mail", "2"] if rows(pilot) else False)
        await pilot.press("p")
        await eventually(lambda: isinstance(pilot.app.screen, Asking))
        await pilot.press("n")
        assert not (await shop.queues["mail"].overview()).holds
        await pilot.press("p")
        await eventually(lambda: isinstance(pilot.app.screen, Asking))
        await pilot.press("y")

        async def is_held() -> bool:
            return bool((await shop.queues["mail"].overview()).holds)

        await eventually(is_held)
        await eventually(lambda: "p resume" in text(pilot, "#deeds"))
        assert "problem" in text(pilot, "#said")


async def test_a_queue_opens_its_jobs_and_a_job_tells_why_it_waits(shop: Faena) -> None:
    await shop.queues["mail"].tasks["send"].enqueue(1, tenant="acme", id="first")
    async with shown(shop) as pilot:
        await eventually(lambda: bool(rows(pilot)))
        await pilot.press("enter")
        await eventually(lambda: [row[0] for row in rows(pilot)] == ["first"])
        await pilot.press("enter")
        await eventually(lambda: isinstance(pilot.app.screen, Told))
        await pilot.press("escape")
        await pilot.press("c")
        await eventually(lambda: isinstance(pilot.app.screen, Asking))
        await pilot.press("y")
        await eventually(lambda: rows(pilot) == [])
        await pilot.press("tab", "tab", "tab", "tab")
        await eventually(lambda: [row[0] for row in rows(pilot)] == ["first"])
        await pilot.press("escape")
        await eventually(lambda: text(pilot, "#said").startswith("Queues"))
    assert (await shop.queues["mail"].counts())["cancelled"] == 1


async def test_dead_jobs_are_retried_as_new_ones(shop: Faena) -> None:
    send = shop.queues["mail"].tasks["send"]
    await send.enqueue_many([2, 2])
    async with serving(shop):

        async def are_dead() -> bool:
            return (await shop.queues["mail"].counts())["dead"] == 2

        await eventually(are_dead)
    async with shown(shop) as pilot:
        await pilot.press("2")
        await eventually(lambda: len(rows(pilot)) == 2)
        assert "[bold]not markup[/bold] \\x1b[31m" in rows(pilot)[0][-1]
        await pilot.press("r")
        await eventually(lambda: isinstance(pilot.app.screen, Asking))
        await pilot.press("y")
        await eventually(lambda: len(rows(pilot)) == 1)
    assert (await shop.queues["mail"].counts())["ready"] == 1


async def test_every_list_is_read(shop: Faena) -> None:
    await shop.queues["mail"].tasks["send"].enqueue(1, tenant="acme")
    async with serving(shop), shown(shop) as pilot:
        for key, title in enumerate(
            ("Queues", "Dead letters", "Tenants", "Workers", "Schedules", "Upstreams", "Alerts"), 1
        ):
            await pilot.press(str(key))
            await eventually(
                lambda title=title: (
                    text(pilot, "#said").startswith(f"{title}: ")
                    and "reading" not in text(pilot, "#said")
                )
            )


async def test_rows_are_found_by_a_part_of_them(shop: Faena) -> None:
    shop.queue("invoices")
    async with shown(shop) as pilot:
        await eventually(lambda: len(rows(pilot)) > 1)
        await pilot.press("slash", *"invo", "enter")
        await eventually(lambda: [row[0] for row in rows(pilot)] == ["invoices"])
        await pilot.press("escape")
        await eventually(lambda: len(rows(pilot)) > 1)


async def test_a_broker_that_is_gone_leaves_the_last_rows(shop: Faena, server: Server) -> None:
    async with shown(shop) as pilot:
        await eventually(lambda: bool(rows(pilot)))
        server.pause()
        try:
            await eventually(lambda: "as it was" in text(pilot, "#said"))
            assert rows(pilot)
        finally:
            server.resume()
        await eventually(lambda: "as it was" not in text(pilot, "#said"))


def test_in_a_pipe_it_says_what_to_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", f"{__name__}:app"]) == 2
    assert "faena status" in capsys.readouterr().err


app = Faena("shop", "redis://127.0.0.1:1/0")
