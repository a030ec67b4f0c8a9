"""The stand-in accepts what Twilio accepts, and refuses the rest with its codes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from apps.sandbox.sms import Twilio

from tests.apps.sms.conftest import SENDER, SERVICE

ANA = "+5491155550001"
GOOD = {"To": ANA, "From": SENDER, "Body": "Hola ñandú"}


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in GOOD.items() if key != name}


async def post(service: Twilio, **options: Any) -> httpx.Response:
    account = options.pop("account", service.account)
    auth = options.pop("auth", (service.account, service.token))
    async with httpx.AsyncClient(base_url=service.url, auth=auth) as http:
        return await http.post(f"/2010-04-01/Accounts/{account}/Messages.json", **options)


async def test_a_good_message_is_shown_as_twilio_shows_it(service: Twilio) -> None:
    response = await post(service, data=GOOD)
    body = response.json()
    assert response.status_code == 201
    assert (body["status"], body["num_segments"], body["from"]) == ("queued", "1", SENDER)
    assert body["date_created"].endswith(" +0000")


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        (without("To"), 400, 21604),
        (without("From"), 400, 21603),
        (without("Body"), 400, 21602),
        ({**GOOD, "To": "12"}, 400, 21211),
        ({**GOOD, "From": "+15005550001"}, 400, 21606),
        ({**without("From"), "MessagingServiceSid": "MG0"}, 404, 21701),
        ({**GOOD, "Body": "x" * 1601}, 400, 21617),
        ({**GOOD, "To": "+5491155550009"}, 400, 21610),
        ({**GOOD, "To": "+541143210000"}, 400, 21614),
    ],
)
async def test_a_wrong_message_is_refused(
    form: dict[str, str], status: int, code: int, service: Twilio
) -> None:
    service.opted_out.add("+5491155550009")
    service.landlines.add("+541143210000")
    response = await post(service, data=form)
    assert response.status_code == status
    assert response.json() | {"message": ""} == {
        "code": code,
        "message": "",
        "more_info": f"https://www.twilio.com/docs/errors/{code}",
        "status": status,
    }
    assert service.messages == {}
    assert [one.outcome for one in service.ledger.entries] == ["refused"]


async def test_only_the_owner_of_the_account_may_send(service: Twilio) -> None:
    assert (await post(service, data=GOOD, auth=None)).status_code == 401
    assert (await post(service, data=GOOD, auth=(service.account, "x"))).json()["code"] == 20003
    assert (await post(service, data=GOOD, account="AC" + "0" * 32)).status_code == 404


async def test_only_forms_are_understood(service: Twilio) -> None:
    assert (await post(service, json=GOOD)).json()["code"] == 21604
    form = {"content-type": "application/x-www-form-urlencoded"}
    broken = await post(service, content=b"To=%ff\xff", headers=form)
    assert broken.json()["code"] == 21604


async def test_a_messaging_service_accepts_too(service: Twilio) -> None:
    response = await post(service, data={**without("From"), "MessagingServiceSid": SERVICE})
    assert (response.json()["status"], response.json()["num_segments"]) == ("accepted", "0")


async def test_pages_have_a_size(service: Twilio) -> None:
    await post(service, data=GOOD)
    await post(service, data=GOOD)
    auth = (service.account, service.token)
    url = f"{service.url}/2010-04-01/Accounts/{service.account}/Messages.json"
    async with httpx.AsyncClient(auth=auth) as http:
        page = (await http.get(url, params={"PageSize": 1})).json()
        assert [one["sid"][-1] for one in page["messages"]] == ["2"]
        assert (await http.get(url, params={"PageSize": "x"})).status_code == 400
