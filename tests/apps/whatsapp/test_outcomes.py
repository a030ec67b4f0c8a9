"""Every way a call can go wrong is one of four kinds, and no error tells a secret."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from apps.providers.whatsapp import (
    Blocked,
    Client,
    OutsideWindow,
    PairLimited,
    Permanent,
    RateLimited,
    Retryable,
    Settings,
    Template,
    Text,
    Unauthorized,
    UnknownOutcome,
    WhatsAppError,
)
from apps.providers.whatsapp.error_code import CODES
from apps.providers.whatsapp.exchange import MOST_BYTES, USAGE
from apps.sandbox.stand_in import serving
from apps.sandbox.whatsapp import Rate, WhatsApp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from apps.sandbox import Fault
from tests._support.eventually import eventually
from tests.apps.whatsapp.conftest import ANA, Clock

HELLO = Text(body="hola")
SEND = "POST /{id}/messages"

SORTED: dict[type[WhatsAppError], list[int]] = {
    Unauthorized: [0, 190, 3, 10, 200, 250, 299, 131005],
    RateLimited: [4, 80007, 130429, 131057],
    PairLimited: [131056],
    Blocked: [131048, 131064, 131031, 368, 130497, 131042, 132015, 132016, 132068],
    Retryable: [1, 2, 131000, 131016, 135000, 132069],
    OutsideWindow: [131047],
    Permanent: [
        *(33, 100, 131008, 131009, 131021, 131026, 131030, 131037, 131045, 133010),
        *(131049, 130472, 131050, 131051, 131052, 131053),
        *(132000, 132001, 132005, 132007, 132008, 132012, 137000),
    ],
}


class Answers:
    """A service that gives the next of its answers to everything."""

    def __init__(self) -> None:
        self.response = Response()

    async def __call__(self, _request: Request) -> Response:
        return self.response

    def error(self, code: Any, status: int = 400, **more: Any) -> None:
        error = {"message": "m", "type": "OAuthException", "code": code, **more}
        self.response = JSONResponse({"error": error}, status)


@asynccontextmanager
async def answering(http: httpx.AsyncClient) -> AsyncIterator[tuple[Answers, Client]]:
    answers = Answers()
    routes = [Route("/{path:path}", answers.__call__, methods=["GET", "POST"])]
    async with serving(Starlette(routes=routes)) as url:
        settings = Settings(access_token="s3cret-token", phone_number_id="1", base_url=url)
        yield answers, Client(settings, http)


async def test_every_code_means_one_thing_whatever_its_status(http: httpx.AsyncClient) -> None:
    async with answering(http) as (answers, client):
        for kind, codes in SORTED.items():
            for code in codes:
                for status in (400, 403, 429, 500, 503):
                    answers.error(code, status, fbtrace_id="A1b-2")
                    with pytest.raises(WhatsAppError) as caught:
                        await client.send(ANA, HELLO)
                    assert type(caught.value) is kind, code
                    assert (caught.value.code, caught.value.status) == (code, status)
                    assert caught.value.trace_id == "A1b-2"


def test_every_known_code_is_tried_above() -> None:
    assert {code for codes in SORTED.values() for code in codes} - {200, 250, 299} == CODES.keys()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Permanent),
        (401, Unauthorized),
        (403, Unauthorized),
        (404, Permanent),
        (408, Retryable),
        (429, RateLimited),
        (500, UnknownOutcome),
        (502, UnknownOutcome),
        (307, UnknownOutcome),
    ],
)
async def test_where_there_is_no_code_the_status_counts(
    http: httpx.AsyncClient, status: int, kind: type[WhatsAppError]
) -> None:
    async with answering(http) as (answers, client):
        for body in (b"<html>", b"{}", b'{"error": "x"}', b'{"error": {"code": 999999}}'):
            answers.response = Response(body, status)
            with pytest.raises(WhatsAppError) as caught:
                await client.send(ANA, HELLO)
            assert type(caught.value) is kind


async def test_an_unknown_code_that_will_pass_is_tried_again(http: httpx.AsyncClient) -> None:
    async with answering(http) as (answers, client):
        answers.error(999_999, is_transient=True)
        with pytest.raises(Retryable, match="this will pass"):
            await client.send(ANA, HELLO)


@pytest.mark.parametrize(
    ("code", "headers", "seconds"),
    [
        (130429, {}, 5),
        (131056, {}, 6),
        (131057, {}, 60),
        (4, {"retry-after": "7"}, 7),
        (4, {"retry-after": "soon"}, 60),
        (4, {"retry-after": "9" * 30}, 3600),
        (80007, {USAGE: '{"1": [{"type": "m", "estimated_time_to_regain_access": 3}]}'}, 180),
        (80007, {USAGE: '{"1": [{"estimated_time_to_regain_access": 0}]}'}, 60),
        (80007, {USAGE: '{"1": [{"type": "m"}]}'}, 60),
        (80007, {USAGE: "[1]"}, 60),
        (80007, {USAGE: "{"}, 60),
    ],
)
async def test_a_limit_says_how_long_to_wait(
    http: httpx.AsyncClient, code: int, headers: dict[str, str], seconds: int
) -> None:
    async with answering(http) as (answers, client):
        answers.error(code)
        answers.response.headers.update(headers)
        with pytest.raises(RateLimited) as caught:
            await client.send(ANA, HELLO)
    assert caught.value.retry_after == seconds


async def test_too_many_messages_a_second_are_rate_limited(
    client: Client, wa: WhatsApp, clock: Clock
) -> None:
    wa.rate = Rate(per_second=3)
    for number in range(3):
        await client.send(f"{ANA}{number}", HELLO)
    with pytest.raises(RateLimited) as caught:
        await client.send(ANA, HELLO)
    assert caught.value.code == 130429
    clock.at += 1
    await client.send(ANA, HELLO)
    assert len(wa.conversation.sent) == 4


async def test_too_many_messages_to_one_recipient_are_pair_limited(
    client: Client, wa: WhatsApp, clock: Clock
) -> None:
    wa.rate = Rate(pair_interval_s=6, pair_burst=2)
    for _ in range(2):
        await client.send(ANA, HELLO)
    with pytest.raises(PairLimited):
        await client.send(ANA, HELLO)
    await client.send("5491155559999", HELLO)
    clock.at += 6
    await client.send(ANA, HELLO)
    with pytest.raises(PairLimited):
        await client.send(ANA, HELLO)


@pytest.mark.parametrize(
    ("template", "code", "kind"),
    [
        (Template(name="turno_confirmado", parameters=["Ana"]), 132000, Permanent),
        (Template(name="turno_confirmado", language="en_US"), 132001, Permanent),
        (Template(name="nadie"), 132001, Permanent),
        (Template(name="aviso"), 132000, Permanent),
        (Template(name="factura", parameters=["x"], header="x"), 132012, Permanent),
        (Template(name="pausado"), 132015, Blocked),
        (Template(name="prohibido"), 132016, Blocked),
    ],
)
async def test_a_template_that_does_not_fit_is_refused(
    client: Client, template: Template, code: int, kind: type[WhatsAppError]
) -> None:
    with pytest.raises(kind) as caught:
        await client.send(ANA, template)
    assert caught.value.code == code


@pytest.mark.parametrize("kind", ["cut", "lost"])
async def test_a_message_without_an_answer_is_unknown(
    client: Client, wa: WhatsApp, kind: Any
) -> None:
    """Nothing tells the two apart but statuses, which carry what the caller gave."""
    wa.faults.add(Fault(kind=kind, times=1))
    with pytest.raises(UnknownOutcome):
        await client.send(ANA, HELLO, callback_data="msg-7")
    found = [one.body["biz_opaque_callback_data"] for one in wa.conversation.sent.values()]
    assert found == (["msg-7"] if kind == "lost" else [])


async def test_an_answer_without_an_id_is_unknown(client: Client, wa: WhatsApp) -> None:
    wa.faults.add(Fault(kind="wrong"))
    with pytest.raises(UnknownOutcome, match="not one message"):
        await client.send(ANA, HELLO)


async def test_what_no_customer_sees_can_be_asked_again(client: Client, wa: WhatsApp) -> None:
    event = wa.text(ANA, "hola")
    wa.faults.add(Fault(kind="lost", times=3))
    for call in (
        client.mark_read(event.id),
        client.upload_media(b"x", "text/plain"),
        client.get_media("1"),
    ):
        with pytest.raises(Retryable):
            await call


async def test_a_slow_answer_is_cut_off(
    client: Client, settings: Settings, http: httpx.AsyncClient, wa: WhatsApp
) -> None:
    await client.send(ANA, HELLO)  # there is a connection now
    wa.faults.add(Fault(kind="slow", seconds=0.2, times=1))
    hasty = Settings(
        access_token=wa.access_token,
        phone_number_id=wa.phone_number_id,
        base_url=settings.base_url,
        timeout_s=0.05,
    )
    with pytest.raises(UnknownOutcome):
        await Client(hasty, http).send(ANA, HELLO)
    await eventually(lambda: len(wa.ledger.of(SEND, "ok")) == 2)  # it was sent all the same


async def test_a_service_that_is_not_there_was_not_asked(http: httpx.AsyncClient) -> None:
    async with serving(Starlette()) as url:
        pass
    client = Client(Settings(access_token="x", phone_number_id="1", base_url=url), http)
    with pytest.raises(Retryable, match="could not be reached"):
        await client.send(ANA, HELLO)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"messages": {}}',
        b'{"messages": []}',
        b'{"messages": [{"id": 1}]}',
        b'{"messages": [{"id": "a"}, {"id": "b"}]}',
        b'{"messages": [1]}',
    ],
)
async def test_an_answer_that_cannot_be_read_is_unknown(
    http: httpx.AsyncClient, body: bytes
) -> None:
    async with answering(http) as (answers, client):
        answers.response = Response(body)
        with pytest.raises(UnknownOutcome, match="cannot be read"):
            await client.send(ANA, HELLO)
        with pytest.raises(Retryable):
            await client.get_media("1")
        with pytest.raises(Retryable):
            await client.mark_read("wamid.1")


async def test_an_answer_without_end_is_not_read(http: httpx.AsyncClient) -> None:
    async with answering(http) as (answers, client):
        answers.response = Response(b" " * (MOST_BYTES + 1))
        with pytest.raises(UnknownOutcome, match="did not answer in full"):
            await client.send(ANA, HELLO)


async def test_a_redirect_is_not_followed(http: httpx.AsyncClient, wa: WhatsApp) -> None:
    async with answering(http) as (answers, client):
        answers.response = RedirectResponse(f"{wa.url}/v23.0/{wa.phone_number_id}/messages")
        with pytest.raises(UnknownOutcome, match="answered 307"):
            await client.send(ANA, HELLO)
    assert wa.ledger.entries == []


async def test_errors_never_tell_a_token_a_number_or_what_was_sent(
    http: httpx.AsyncClient,
) -> None:
    async with answering(http) as (answers, client):
        echo = f"s3cret-token {ANA} mensaje-privado"
        answers.error(100, message=echo, fbtrace_id=echo, error_data={"details": echo})
        with pytest.raises(Permanent) as caught:
            await client.send(ANA, Text(body="mensaje-" + "privado"))
    told = "".join(traceback.format_exception(caught.value)) + json.dumps(vars(caught.value))
    assert not any(one in told for one in ("s3cret-token", ANA, "mensaje-privado"))
