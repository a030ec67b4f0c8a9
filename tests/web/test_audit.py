"""The audit trail is searched by who, what, about what and when, and reads what was changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from faena import Faena
from faena.web.access.caller import Caller
from faena.web.access.role import Role
from faena.web.application import Dashboard
from faena.web.audit import Trail, Wanted
from tests.web.conftest import Browser


async def _keep(trail: Trail, who: str, what: str, target: str, outcome: str = "done") -> str:
    caller = Caller(name=who, role=Role.OPERATOR)

    async def do() -> tuple[object, object, object]:
        if outcome != "done":
            raise ValueError(outcome)
        return None, {"state": "a", "same": 1}, {"state": "<b>", "same": 1}

    try:
        _, record = await trail.keep(caller, what, {"queue": target}, {"reason": "x"}, do)
    except ValueError:
        return ""
    return record.id


@pytest.fixture
async def trail(web: Dashboard) -> Trail:
    trail = (await web.site()).trail
    await _keep(trail, "ana", "queues.pause", "mail")
    await _keep(trail, "bea", "queues.resume", "mail")
    await _keep(trail, "ana", "jobs.cancel", "orders", "it has ended")
    return trail


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("", 3),
        ("who=ana", 2),
        ("who=AN", 2),
        ("what=queues.", 2),
        ("what=queues.pause", 1),
        ("target=order", 1),
        ("outcome=refused", 1),
        ("outcome=done&who=ana", 1),
        ("who=nobody", 0),
    ],
)
async def test_records_are_found(trail: Trail, browser: Browser, query: str, number: int) -> None:
    await browser.sign_in("a-admin")
    page = await browser.get(f"/audit?{query}")
    assert page.text.count("<tr id=") == number
    assert number or "No change matches" in page.text


async def test_records_are_found_by_time(trail: Trail, browser: Browser) -> None:
    await browser.sign_in("a-admin")
    now = datetime.now(UTC)
    hour_ago, in_an_hour = (f"{now + timedelta(hours=h):%Y-%m-%dT%H:%M}" for h in (-1, 1))
    for query, number in (
        (f"since={hour_ago}&until={in_an_hour}", 3),
        (f"since={in_an_hour}", 0),
        (f"until={hour_ago}", 0),
    ):
        page = await browser.get(f"/audit?{query}")
        assert page.text.count("<tr id=") == number, query


async def test_what_was_changed_is_read_at_a_glance(trail: Trail, browser: Browser) -> None:
    await browser.sign_in("a-admin")
    page = await browser.get("/audit?what=queues.pause")
    assert '<span class="quiet">state</span> <del>a</del> → <ins>&lt;b&gt;</ins>' in page.text
    assert "same" not in page.text
    assert "mail is held: x" in page.text
    assert "it has ended" in (await browser.get("/audit?what=jobs.cancel")).text


async def test_pages_follow_a_cursor_with_the_filters(
    trail: Trail, web: Dashboard, browser: Browser
) -> None:
    first = await trail.page(number=1)
    assert (first.records[0].operation, first.cursor is not None) == ("jobs.cancel", True)
    assert first.cursor is not None
    second = await trail.page(first.cursor, number=2)
    assert [one.by for one in second.records] == ["bea", "ana"]
    await browser.sign_in("a-admin")
    page = await browser.get(f"/audit?who=ana&before={first.cursor}")
    assert page.text.count("<tr id=") == 1


async def test_a_search_looks_through_a_bounded_number(trail: Trail) -> None:
    page = await trail.page(number=1, wanted=Wanted(who="nobody"), most=2)
    assert (page.records, page.read) == ((), 2)
    assert page.cursor is not None
    rest = await trail.page(page.cursor, number=1, wanted=Wanted(who="nobody"), most=2)
    assert (rest.records, rest.cursor) == ((), None)


@pytest.mark.parametrize(
    "query",
    [
        *("before=x", "outcome=maybe", "since=yesterday", "until=9", "who=%00"),
        *(f"what={'x' * 201}", "before=٣-٣", "before=99999999999999999999-0", "before=0-0"),
    ],
)
async def test_filters_that_make_no_sense_are_refused(
    app: Faena, browser: Browser, query: str
) -> None:
    await browser.sign_in("a-admin")
    assert (await browser.get(f"/audit?{query}")).status_code == 422


@pytest.mark.parametrize("query", ["since=0001-01-01", "until=1970-01-01", "until=9999-12-31"])
async def test_times_that_no_record_is_of_are_answered(
    trail: Trail, browser: Browser, query: str
) -> None:
    await browser.sign_in("a-admin")
    page = await browser.get(f"/audit?{query}")
    assert page.status_code == 200
    assert page.text.count("<tr id=") == (0 if query.startswith("until=1970") else 3)
