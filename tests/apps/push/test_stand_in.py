"""The stand-in checks claims and messages as Google does."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import httpx
import pytest
from apps.sandbox.push import Push
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.apps.push.conftest import EMAIL, PROJECT

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def claim(service: Push, key: rsa.RSAPrivateKey, *, alg: str = "RS256", **changed: Any) -> str:
    now = int(time.time())
    claims = {
        "iss": EMAIL,
        "scope": SCOPE,
        "aud": f"{service.url}/token",
        "iat": now,
        "exp": now + 3600,
        **changed,
    }
    signed = f"{part({'alg': alg, 'typ': 'JWT'})}.{part(claims)}"
    signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


async def exchange(service: Push, assertion: str, grant: str = GRANT) -> httpx.Response:
    async with httpx.AsyncClient() as http:
        form = {"grant_type": grant, "assertion": assertion}
        return await http.post(f"{service.url}/token", data=form)


async def access(service: Push, key: rsa.RSAPrivateKey) -> str:
    return (await exchange(service, claim(service, key))).json()["access_token"]


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "x@example"},
        {"aud": "https://oauth2.googleapis.com/token"},
        {"scope": "https://www.googleapis.com/auth/analytics.readonly"},
        {"exp": int(time.time()) + 7200},
        {"iat": int(time.time()) - 9000, "exp": int(time.time()) - 6000},
        {"iat": int(time.time()) + 3000, "exp": int(time.time()) + 6000},
        {"exp": "later"},
        {"alg": "none"},
        {"alg": "HS256"},
    ],
)
async def test_a_wrong_claim_is_denied(
    changed: dict[str, Any], service: Push, private_key: rsa.RSAPrivateKey
) -> None:
    response = await exchange(service, claim(service, private_key, **changed))
    assert response.status_code == 400
    assert response.json()["error"] == "invalid_grant"


async def test_a_claim_must_be_signed_by_the_account(
    service: Push, private_key: rsa.RSAPrivateKey
) -> None:
    good = claim(service, private_key)
    assert (await exchange(service, good)).json()["token_type"] == "Bearer"
    stranger = rsa.generate_private_key(65537, 2048)
    for wrong in (claim(service, stranger), good[:-8], good + "A", "", "a.b.c", "é.é.é"):
        assert (await exchange(service, wrong)).status_code == 400
    assert (await exchange(service, good, grant="password")).status_code == 400


async def send(service: Push, token: str, body: Any, project: str = PROJECT) -> httpx.Response:
    url = f"{service.url}/v1/projects/{project}/messages:send"
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http:
        if isinstance(body, bytes):
            return await http.post(url, content=body)
        return await http.post(url, json=body)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        [],
        {},
        {"message": []},
        {"message": {"notification": {"title": "x"}}},
        {"message": {"token": "TOKEN", "topic": "x"}},
        {"message": {"token": "short"}},
        {"message": {"token": "TOKEN", "to": "x"}},
        {"message": {"token": "TOKEN", "data": {"n": 7}}},
        {"message": {"token": "TOKEN", "data": []}},
        {"message": {"token": "TOKEN", "notification": {"title": 7}}},
        {"message": {"token": "TOKEN", "android": {"ttl": 60}}},
        {"message": {"token": "TOKEN", "android": {"priority": "10"}}},
        {"message": {"token": "TOKEN", "data": {"x": "y" * 4300}}},
    ],
)
async def test_a_wrong_message_is_refused(
    body: Any, service: Push, private_key: rsa.RSAPrivateKey
) -> None:
    device = service.register()
    if isinstance(body, dict) and isinstance(body.get("message"), dict):
        message = body["message"]
        is_there = message.get("token") == "TOKEN"
        body = {"message": {**message, "token": device} if is_there else message}
    response = await send(service, await access(service, private_key), body)
    error = response.json()["error"]
    assert (response.status_code, error["status"]) == (400, "INVALID_ARGUMENT")
    assert error["details"][0]["errorCode"] == "INVALID_ARGUMENT"
    assert service.messages == []


async def test_only_who_has_a_token_may_send_for_the_project(
    service: Push, private_key: rsa.RSAPrivateKey
) -> None:
    body = {"message": {"token": service.register()}}
    token = await access(service, private_key)
    assert (await send(service, token, body)).status_code == 200
    assert (await send(service, token, body, project="other")).status_code == 403
    assert (await send(service, "ya29.x", body)).json()["error"]["status"] == "UNAUTHENTICATED"
    service.expire_tokens()
    assert (await send(service, token, body)).status_code == 401
    assert len(service.messages) == 1


async def test_a_message_can_be_checked_without_being_sent(
    service: Push, private_key: rsa.RSAPrivateKey
) -> None:
    body = {"validate_only": True, "message": {"token": service.register()}}
    assert (await send(service, await access(service, private_key), body)).status_code == 200
    assert service.messages == []


async def test_a_device_that_is_gone_is_not_found(
    service: Push, private_key: rsa.RSAPrivateKey
) -> None:
    device = service.register()
    service.unregister(device)
    body = {"message": {"token": device}}
    response = await send(service, await access(service, private_key), body)
    error = response.json()["error"]
    assert (response.status_code, error["status"]) == (404, "NOT_FOUND")
    assert error["details"][0]["errorCode"] == "UNREGISTERED"
