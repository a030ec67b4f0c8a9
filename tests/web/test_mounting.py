"""The dashboard inside other programs, and behind a proxy that ends TLS and takes a prefix away."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from django.core.asgi import get_asgi_application
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from faena import Faena
from faena.errors import ConfigError
from faena.web import Access, Dashboard, beside, dashboard
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from tests._support.django_settings import configure
from tests._support.valkey import Server
from tests.web.conftest import PASSWORD
from tests.web.identities import serving_http

PATH = "/admin/queues"


def _starlette(web: Dashboard) -> Any:
    async def own(_request: Request) -> Response:
        return PlainTextResponse("the program")

    return Starlette(routes=[Route("/own", own), Mount(PATH, web), Mount("/admin/api", web.api)])


def _fastapi(web: Dashboard) -> Any:
    made = FastAPI()

    @made.get("/own")
    async def own() -> Response:
        return PlainTextResponse("the program")

    made.mount(PATH, web)
    made.mount("/admin/api", web.api)
    return made


def _django(web: Dashboard) -> Any:
    configure()
    return beside(get_asgi_application(), web, api="/admin/api")


def _django_own(_request: Any) -> Any:
    from django.http import HttpResponse

    return HttpResponse("the program")


def _urls() -> list[Any]:
    from django.urls import path

    return [path("own", _django_own)]


urlpatterns = _urls()


async def _sign_in(client: httpx.AsyncClient, path: str, origin: str) -> httpx.Response:
    given = {"user": "ana", "password": PASSWORD}
    return await client.post(f"{path}/sign-in", data=given, headers={"origin": origin})


@pytest.fixture
async def app(server: Server, namespace: str) -> AsyncIterator[Faena]:
    """An app on a broker of its own, which a lifespan may close."""
    made = Faena("shop", server.url, namespace=namespace)
    yield made
    await made.close()


@pytest.fixture
async def accounts(app: Faena) -> Accounts:
    return Accounts((await app.runtime()).engine)


@pytest.mark.parametrize("program", [_starlette, _fastapi, _django])
async def test_it_is_mounted_in_a_program(
    app: Faena, accounts: Accounts, program: Callable[[Dashboard], Any]
) -> None:
    app.queue("mail")
    await accounts.add_user(Account(name="ana", role=Role.OWNER), PASSWORD)
    _, token = await accounts.add_token(Account(name="ci", role=Role.OPERATOR))
    web = dashboard(app, access=Access())
    async with (
        serving_http(program(web), lifespan="on") as address,
        httpx.AsyncClient(base_url=address) as client,
    ):
        assert (await client.get("/own")).text == "the program"
        assert (await client.get(f"{PATH}x")).status_code == 404
        bare = await client.get(PATH, follow_redirects=True)
        assert str(bare.url).endswith(f"{PATH}/sign-in")
        door = await client.get(f"{PATH}/")
        assert door.headers["location"] == f"{PATH}/sign-in"
        answer = await _sign_in(client, PATH, address)
        assert answer.headers["location"] == f"{PATH}/"
        page = await client.get(f"{PATH}/")
        assert f'href="{PATH}/queues/mail"' in page.text
        style = re.search(r'href="([^"]+style\.css)"', page.text)
        assert style is not None
        assert (await client.get(style[1])).headers["content-type"].startswith("text/css")
        headers = {"authorization": f"Bearer {token}"}
        for api in ("/admin/api", f"{PATH}/api"):
            answer = await client.post(f"{api}/queues/mail/pause", json={}, headers=headers)
            assert answer.status_code == 200
            told = (await client.get(f"{api}/openapi.json", headers=headers)).json()
            assert told["servers"] == [{"url": api}]
        async with client.stream("GET", f"{PATH}/live/overview") as stream:
            assert stream.status_code == 200
            async for part in stream.aiter_text():
                assert part
                break
    await web.close()
    holds = (await app.queues["mail"].overview()).holds
    assert [hold.reason for hold in holds] == ["pause"]


@asynccontextmanager
async def _proxy(tmp_path: Path, prefix: str) -> AsyncIterator[tuple[str, ssl.SSLContext, Any]]:
    """A proxy that ends TLS and takes a prefix away; where it sends requests is said later."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    key, chain = tmp_path / "key.pem", tmp_path / "chain.pem"
    certificate.private_key_pem.write_to_path(key)
    chain.write_bytes(b"".join(one.bytes() for one in certificate.cert_chain_pems))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    behind: list[str] = []

    async def forward(request: Request) -> Response:
        path = request.url.path.removeprefix(prefix)
        headers = [(name, text) for name, text in request.headers.items() if name != "host"]
        async with httpx.AsyncClient(base_url=behind[0]) as client:
            found = await client.request(
                request.method,
                f"{PATH}{path}",
                params=request.query_params,
                headers=headers,
                content=await request.body(),
            )
        answer = Response(found.content, found.status_code)
        answer.raw_headers = [
            one for one in found.headers.raw if one[0].lower() != b"transfer-encoding"
        ]
        return answer

    everything = Starlette(
        routes=[Route("/{path:path}", forward, methods=["GET", "POST"])],
    )
    async with serving_http(everything, ssl_keyfile=str(key), ssl_certfile=str(chain)) as address:
        port = address.rpartition(":")[2]
        yield f"https://localhost:{port}", trusting, behind


async def test_behind_a_proxy_it_has_the_address_that_browsers_see(
    app: Faena, accounts: Accounts, tmp_path: Path
) -> None:
    app.queue("mail")
    await accounts.add_user(Account(name="ana", role=Role.OWNER), PASSWORD)
    async with _proxy(tmp_path, "/jobs") as (origin, trusting, behind):
        web = dashboard(app, access=Access(), address=f"{origin}/jobs")
        async with (
            serving_http(_starlette(web)) as address,
            httpx.AsyncClient(base_url=origin, verify=trusting) as client,
        ):
            behind.append(address)
            assert (await client.get("/jobs/")).headers["location"] == "/jobs/sign-in"
            assert (await _sign_in(client, "/jobs", "https://evil.test")).status_code == 403
            answer = await _sign_in(client, "/jobs", origin)
            assert answer.headers["location"] == "/jobs/"
            cookie = answer.headers["set-cookie"]
            assert cookie.startswith("__Host-faena=")
            assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
            assert "domain" not in cookie.lower()
            page = await client.get("/jobs/")
            assert 'href="/jobs/queues/mail"' in page.text
            assert PATH not in page.text
            found = re.search(r'name="faena-token" content="([^"]+)"', page.text)
            assert found is not None
            given = {"token": found[1], "name": "bob", "role": "viewer", "back": "/access"}
            answer = await client.post(
                "/jobs/do/users.invite", data=given, headers={"origin": origin}
            )
            assert f"{origin}/jobs/invitation/" in answer.text
        await web.close()


@pytest.mark.parametrize(
    "address", ["ops.example.com", "http://ops.example.com", "https://a/b?c", "https://u@a/", 7]
)
def test_an_address_that_browsers_cannot_see_is_refused(app: Faena, address: Any) -> None:
    with pytest.raises(ConfigError, match="address"):
        dashboard(app, access=Access(), address=address)


@pytest.mark.parametrize("path", ["admin", "/admin/", "", "/", "//a"])
def test_a_path_that_cannot_be_mounted_is_refused(app: Faena, path: str) -> None:
    with pytest.raises(ConfigError, match="path"):
        beside(Starlette(), dashboard(app, access=Access()), path=path)
