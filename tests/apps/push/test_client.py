"""Notices are sent with a token that is fetched once and replaced when it ends."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time

import httpx
import pytest
from apps.providers.push import Client, Notice, Permanent, Settings, Unregistered, push_upstream
from apps.sandbox.push import Push
from cryptography.hazmat.primitives.asymmetric import rsa

from apps.sandbox import Fault
from faena import Faena
from faena.testing import harness
from tests.apps.push.conftest import EMAIL, PROJECT, Clock, pem


def notice(device: str, **more: object) -> Notice:
    given = {"title": "Trabajo nuevo", "body": "Belgrano 1450, mañana", **more}
    return Notice(token=device, **given)  # pyright: ignore[reportArgumentType]


async def test_a_notice_reaches_the_device(client: Client, service: Push) -> None:
    device = service.register()
    urgent = notice(device, data={"job": "7"}, collapse_key="job-7", is_urgent=True, ttl_s=60)
    name = await client.send(urgent)
    (message,) = service.messages
    assert name == f"projects/{PROJECT}/messages/1" == message["name"]
    assert message["notification"] == {"title": "Trabajo nuevo", "body": "Belgrano 1450, mañana"}
    assert message["data"] == {"job": "7"}
    assert message["android"] == {
        "priority": "high",
        "ttl": "60s",
        "collapse_key": "job-7",
        "notification": {"tag": "job-7"},
    }
    assert message["apns"]["headers"] == {"apns-priority": "10", "apns-collapse-id": "job-7"}


async def test_a_token_is_used_until_a_minute_before_its_end(
    settings: Settings, http: httpx.AsyncClient, service: Push
) -> None:
    began_at = time.time() - 3539
    clock = Clock(began_at)
    client, device = Client(settings, http, now=clock), service.register()
    await client.send(notice(device))
    clock.at = began_at + 3538
    await client.send(notice(device))
    assert len(service.ledger.of("token", "ok")) == 1
    clock.at = began_at + 3539
    await client.send(notice(device))
    assert len(service.ledger.of("token", "ok")) == 2


async def test_notices_that_come_at_once_share_one_token(client: Client, service: Push) -> None:
    device = service.register()
    await asyncio.gather(*(client.send(notice(device)) for _ in range(10)))
    assert len(service.ledger.of("token")) == 1
    assert len(service.messages) == 10


async def test_a_token_that_has_ended_early_is_replaced_once(client: Client, service: Push) -> None:
    device = service.register()
    await client.send(notice(device))
    service.expire_tokens()
    await client.send(notice(device))
    assert [one.outcome for one in service.ledger.of("send")] == ["ok", "refused", "ok"]
    assert len(service.messages) == 2


async def test_a_token_that_is_never_accepted_is_permanent(
    settings: Settings, http: httpx.AsyncClient, service: Push
) -> None:
    service.faults.add(Fault(kind="status", status=401, operation="send"))
    with pytest.raises(Permanent, match="status 401"):
        await Client(settings, http).send(notice(service.register()))
    assert len(service.ledger.of("send")) == 2


async def test_a_device_without_the_app_is_told_apart(client: Client, service: Push) -> None:
    device = service.register()
    service.unregister(device)
    with pytest.raises(Unregistered) as caught:
        await client.send(notice(device))
    assert caught.value.code == "UNREGISTERED"
    assert device not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"data": {"n": 7}},
        {"data": {"google.x": "1"}},
        {"data": {"from": "1"}},
        {"body": "x" * 4097},
        {"body": "ñ" * 2049},
        {"data": {"x": "y" * 4096}},
        {"collapse_key": "x" * 65},
        {"ttl_s": -1},
        {"token": ""},
    ],
)
async def test_a_wrong_notice_is_not_sent(
    wrong: dict[str, object], client: Client, service: Push
) -> None:
    with pytest.raises(Permanent, match="must have"):
        await client.send(dataclasses.replace(notice("x"), **wrong))
    assert service.ledger.entries == []


async def test_a_wrong_account_is_permanent(
    settings: Settings, http: httpx.AsyncClient, service: Push
) -> None:
    other = pem(rsa.generate_private_key(65537, 2048))
    device = service.register()
    for wrong in ({"private_key": other}, {"client_email": "x@example"}):
        with pytest.raises(Permanent) as caught:
            await Client(dataclasses.replace(settings, **wrong), http).send(notice(device))
        assert caught.value.code == "invalid_grant"
    with pytest.raises(Permanent, match="cannot be read"):
        await Client(dataclasses.replace(settings, private_key="no key"), http).send(notice(device))
    with pytest.raises(Permanent, match="status 403"):
        await Client(dataclasses.replace(settings, project_id="other-1"), http).send(notice(device))


def test_settings_are_the_service_account_of_the_environment(
    private_key: rsa.RSAPrivateKey,
) -> None:
    account = {
        "type": "service_account",
        "project_id": PROJECT,
        "client_email": EMAIL,
        "private_key": pem(private_key),
        "private_key_id": "k1",
    }
    settings = Settings.from_env({"FCM_SERVICE_ACCOUNT": json.dumps(account)})
    assert settings.base_url == "https://fcm.googleapis.com"
    assert settings.token_url == "https://oauth2.googleapis.com/token"
    assert "PRIVATE KEY" not in repr(settings)
    with pytest.raises(ValueError, match="must be set"):
        Settings.from_env({})
    with pytest.raises(ValueError, match="must be the JSON") as caught:
        Settings.from_env({"FCM_SERVICE_ACCOUNT": '{"private_key": "secret"}'})
    assert "secret" not in str(caught.value)
    for wrong in ({"project_id": "../x"}, {"token_url": "http://example.com/token"}):
        with pytest.raises(ValueError, match="must"):
            dataclasses.replace(settings, **wrong)


def test_a_notice_does_not_show_what_it_tells() -> None:
    assert repr(notice("device", collapse_key="k")) == (
        "Notice(collapse_key='k', is_urgent=False, ttl_s=86400)"
    )


async def test_a_job_of_a_device_that_is_gone_ends_at_once(client: Client, service: Push) -> None:
    app = Faena("shop")
    push, queue = push_upstream(app), app.queue("notices")
    device = service.register()

    @queue.task(upstreams=[push])
    async def tell(to: str) -> str:
        return await client.send(notice(to))

    async with harness(app) as h:
        service.faults.add(Fault(kind="status", status=429, seconds=9, operation="send", times=1))
        await tell.enqueue(device)
        assert (await h.drain()).counts == {"limited": 1}
        assert (await h.drain(through="1m")).counts == {"completed": 1}
        service.unregister(device)
        await tell.enqueue(device)
        assert (await h.drain()).counts == {"dead": 1}
