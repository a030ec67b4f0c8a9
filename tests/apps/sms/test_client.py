"""Messages are sent, found again and counted in segments."""

from __future__ import annotations

import dataclasses
import logging
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from apps.providers.sms import (
    OPTED_OUT,
    Client,
    Permanent,
    RateLimited,
    Settings,
    UnknownOutcome,
    segments,
    sms_upstream,
)
from apps.sandbox.sms import Twilio

from apps.sandbox import Fault
from faena import Faena
from faena.testing import harness
from tests.apps.sms.conftest import SERVICE

ANA, LEO = "+5491155550001", "+5491155550002"
TEXT = "Su técnico llega mañana a las 10."


async def test_a_message_is_sent(client: Client, service: Twilio) -> None:
    message = await client.send(ANA, TEXT)
    assert (message.status, message.segments, message.has_failed) == ("queued", 1, False)
    assert message.items == {"segment": 1}
    assert service.messages[message.sid]["body"] == TEXT
    assert (await client.get(message.sid)).body == TEXT
    (entry,) = service.ledger.of("send", "ok")
    assert entry.subject == ANA


async def test_a_messaging_service_says_later_how_many_segments_there_were(
    settings: Settings, http: httpx.AsyncClient
) -> None:
    of_service = dataclasses.replace(settings, sender=None, messaging_service_sid=SERVICE)
    message = await Client(of_service, http).send(ANA, "x" * 161)
    assert (message.status, message.segments) == ("accepted", 2)


async def test_a_message_without_an_answer_is_found_before_it_is_sent_again(
    client: Client, service: Twilio
) -> None:
    began_at = datetime.now(UTC)
    await client.send(LEO, TEXT)
    service.faults.add(Fault(kind="lost", operation="send", times=1))
    with pytest.raises(UnknownOutcome):
        await client.send(ANA, TEXT)
    (found,) = await client.find(ANA, since=began_at)
    assert (found.body, found.to) == (TEXT, ANA)
    assert await client.find(ANA, since=began_at + timedelta(hours=1)) == []


async def test_a_message_that_fails_at_once_says_why(client: Client, service: Twilio) -> None:
    service.faults.add(Fault(kind="wrong"))
    message = await client.send(ANA, TEXT)
    assert message.has_failed
    assert message.error_code == 30003


async def test_numbers_and_texts_are_checked_before_they_are_sent(
    client: Client, service: Twilio
) -> None:
    for to in ("1155550001", "+54 911", "+0123456789", f"{ANA}\n", "+٥٤٩١١٥٥٥٥٠٠٠١", ""):
        with pytest.raises(Permanent, match="a number must be"):
            await client.send(to, TEXT)
    for text in ("", "x" * 1601):
        with pytest.raises(Permanent, match="a text must have"):
            await client.send(ANA, text)
    with pytest.raises(Permanent, match="a sid must be"):
        await client.get("../Calls")
    assert service.ledger.entries == []


async def test_a_recipient_who_has_opted_out_is_known_by_the_code(
    client: Client, service: Twilio
) -> None:
    service.opted_out.add(ANA)
    with pytest.raises(Permanent) as caught:
        await client.send(ANA, TEXT)
    assert caught.value.code == OPTED_OUT
    assert ANA not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("a", 1),
        ("a" * 160, 1),
        ("a" * 161, 2),
        ("a" * 306, 2),
        ("a" * 307, 3),
        ("ñ" * 160, 1),
        ("á" * 70, 1),
        ("á" * 71, 2),
        ("á" * 134, 2),
        ("á" * 135, 3),
        ("€" * 80, 1),
        ("€" * 81, 2),
        ("a" * 152 + "€" * 5, 2),  # the first one does not fit into the rest of a part
        ("a" * 152 + "€" + "a" * 152, 3),
        ("😀" * 35, 1),
        ("😀" * 36, 2),
        ("😀" * 67, 3),  # a pair is not cut: 33 in a part
    ],
)
def test_a_text_has_as_many_segments_as_networks_make_of_it(text: str, number: int) -> None:
    assert segments(text) == number


async def test_numbers_are_not_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "httpx")
    await client.find(ANA, since=datetime.now(UTC))
    assert "Messages.json" in caplog.text
    assert ANA[1:] not in caplog.text


def test_settings_do_not_show_the_token_and_must_make_sense() -> None:
    account = "AC" + "0" * 32
    environ = {
        "TWILIO_ACCOUNT_SID": account,
        "TWILIO_AUTH_TOKEN": "secret",
        "TWILIO_FROM": "+15005550006",
    }
    settings = Settings.from_env(environ)
    assert (settings.base_url, settings.sender) == ("https://api.twilio.com", "+15005550006")
    assert "secret" not in repr(settings)
    with pytest.raises(ValueError, match="TWILIO_AUTH_TOKEN must be set"):
        Settings.from_env({"TWILIO_ACCOUNT_SID": account})
    for wrong in (
        {"account_sid": "AC/../x"},
        {"auth_token": ""},
        {"sender": None},
        {"messaging_service_sid": SERVICE},
        {"base_url": "http://api.twilio.com"},
    ):
        with pytest.raises(ValueError, match="must"):
            dataclasses.replace(settings, **wrong)


async def test_jobs_are_metered_by_segments_and_wait_when_asked_to(
    client: Client, service: Twilio
) -> None:
    app = Faena("shop")
    twilio, queue = sms_upstream(app), app.queue("texts")

    @queue.task(upstreams=[twilio])
    async def text(body: str) -> None:
        twilio.spend((await client.send(ANA, body)).items)

    budgets = [(one.amount, one.per, one.thresholds) for one in twilio.options.budgets]
    assert budgets == [("20 USD", "day", (80, 100)), ("200 USD", "month", (80, 100))]
    service.faults.add(Fault(kind="status", status=429, seconds=5, times=1))
    async with harness(app) as h:
        await text.enqueue("x" * 161)
        assert (await h.drain()).counts == {"limited": 1}
        assert (await h.drain(through="1m")).counts == {"completed": 1}
        assert (await twilio.view()).budgets[0].spent.micro == 2 * 7_900


def test_errors_have_their_meaning() -> None:
    twilio = sms_upstream(Faena("shop"))
    limited = twilio.sorts(RateLimited("x", retry_after="7"))
    assert limited is not None
    assert (limited.kind, limited.retry_after) == ("rate_limited", "7")
    for error, kind in ((Permanent("x"), "permanent"), (UnknownOutcome("x"), "unknown")):
        meaning = twilio.sorts(error)
        assert meaning is not None
        assert meaning.kind == kind
