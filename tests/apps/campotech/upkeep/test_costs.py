"""What services have cost is mailed each morning."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest
from apps.campotech.settings import Settings

from tests.apps.campotech.messaging.office import Office

TO = ("finanzas@campotech.example", "jefa@campotech.example")


@pytest.fixture
async def mailed(office: Office) -> Office:
    """An office that mails its costs, and has some."""
    office.system.settings = replace(office.system.settings, costs_to=TO)
    await office.receive(office.written())
    return office


async def test_the_costs_of_a_day_are_mailed_the_next_morning(mailed: Office) -> None:
    now = mailed.harness.clock.now
    day = now.date().isoformat()  # costs are of days of UTC
    morning = datetime.combine(now.date() + timedelta(days=1), time(11, 1), UTC)
    mailed.harness.clock.advance(morning - now - timedelta(minutes=5))
    await mailed.harness.drain("scheduler", through="5m")
    mails = [one for one in mailed.world.mail.mailbox if day in one.message["Subject"]]
    assert [one.recipients for one in mails] == [TO]
    report = await mailed.system.app.cost_report(day=day)
    assert mails[0].message["Subject"] == f"Costos del {day}: {report.spent[0]}"
    body = mails[0].message.get_body(("plain",))
    assert body is not None
    lines = body.get_content().splitlines()
    assert f"  openai: {report.services[0].spent}" in lines
    assert any(line.startswith("  openai (este mes): ") for line in lines)


async def test_nobody_is_mailed_who_was_not_named(office: Office) -> None:
    report = await office.system.app.cost_report()
    assert await office.system.costs.mail(report) is False
    assert office.mailed() == []


async def test_the_mail_of_a_day_has_one_id(mailed: Office) -> None:
    report = await mailed.system.app.cost_report()
    for _ in range(2):
        assert await mailed.system.costs.mail(report)
    ids = {one.message["Message-ID"] for one in mailed.world.mail.mailbox}
    assert len(ids) == 1


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="CAMPOTECH_COSTS_TO must be an address"):
        Settings.from_env({"CAMPOTECH_SECRETS": "s" * 32, "CAMPOTECH_COSTS_TO": "nobody"})
