"""Files: uploaded, found, and fetched from Meta's hosts only, up to a size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from apps.providers.whatsapp import (
    Client,
    Invalid,
    MediaGone,
    MediaTooLarge,
    Permanent,
    Retryable,
    Settings,
    StoredMedia,
    Unauthorized,
)
from apps.sandbox.stand_in import serving
from apps.sandbox.whatsapp import Event, WhatsApp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from apps.sandbox import Fault
from tests.apps.whatsapp.conftest import ANA, Clock

DOWNLOAD = "GET /media/files/{id}"
SOUND = b"OggS" + bytes(range(256)) * 40


@pytest.fixture
def voice(wa: WhatsApp) -> Event:
    return wa.voice(ANA, SOUND)


def media_id(event: Event) -> str:
    return event.value["audio"]["id"]


async def test_a_voice_message_is_fetched(client: Client, voice: Event) -> None:
    found = await client.get_media(media_id(voice))
    assert (found.mime_type, found.size) == ("audio/ogg; codecs=opus", len(SOUND))
    assert await client.download_media(found) == SOUND


async def test_an_address_is_good_once(client: Client, voice: Event) -> None:
    found = await client.get_media(media_id(voice))
    await client.download_media(found)
    with pytest.raises(MediaGone):
        await client.download_media(found)
    assert await client.download_media(await client.get_media(media_id(voice))) == SOUND


async def test_an_address_is_good_for_five_minutes(
    client: Client, voice: Event, clock: Clock
) -> None:
    early, late = [await client.get_media(media_id(voice)) for _ in range(2)]
    clock.at += 299
    assert await client.download_media(early) == SOUND
    clock.at += 1
    with pytest.raises(MediaGone):
        await client.download_media(late)


async def test_an_upload_comes_back_as_it_was(client: Client, wa: WhatsApp) -> None:
    id_ = await client.upload_media(SOUND, "audio/ogg", filename='a"b\r\n.ogg')
    assert await client.download_media(await client.get_media(id_)) == SOUND
    assert wa.ledger.of("POST /{id}/media")[0].detail == {"bytes": len(SOUND)}


@pytest.mark.parametrize(
    ("data", "mime"), [(b"", "audio/ogg"), (b"x", ""), (b"x", "audio/ogg\r\nx: y"), (b"x", "a/b/c")]
)
async def test_an_upload_without_content_or_type_is_refused(
    client: Client, data: bytes, mime: str
) -> None:
    with pytest.raises(Invalid, match="must have content and a type"):
        await client.upload_media(data, mime)


async def test_a_type_that_whatsapp_does_not_take_is_refused(client: Client) -> None:
    with pytest.raises(Permanent) as caught:
        await client.upload_media(b"MZ", "application/x-msdownload")
    assert caught.value.code == 100


@pytest.mark.parametrize("id_", ["", "1/../2", "x", "1?x", "9" * 33])
async def test_what_is_no_media_id_is_not_asked_for(client: Client, wa: WhatsApp, id_: str) -> None:
    with pytest.raises(Invalid, match="digits only"):
        await client.get_media(id_)
    assert wa.ledger.entries == []


async def test_the_media_of_another_number_are_not_found(
    settings: Settings, http: httpx.AsyncClient, voice: Event
) -> None:
    other = Client(replace(settings, phone_number_id="999"), http)
    with pytest.raises(Permanent):
        await other.get_media(media_id(voice))


async def test_a_file_that_says_it_is_too_large_is_not_fetched(
    client: Client, wa: WhatsApp, voice: Event
) -> None:
    found = await client.get_media(media_id(voice))
    with pytest.raises(MediaTooLarge, match="at most 100 bytes"):
        await client.download_media(found, most_bytes=100)
    assert wa.ledger.of(DOWNLOAD) == []


async def test_a_cut_download_can_be_asked_again(
    client: Client, wa: WhatsApp, voice: Event
) -> None:
    wa.faults.add(Fault(kind="cut", operation=DOWNLOAD, times=1))
    found = await client.get_media(media_id(voice))
    with pytest.raises(Retryable):
        await client.download_media(found)
    assert await client.download_media(found) == SOUND


async def test_a_wrong_token_gets_no_file(
    settings: Settings, http: httpx.AsyncClient, client: Client, voice: Event
) -> None:
    found = await client.get_media(media_id(voice))
    with pytest.raises(Unauthorized):
        await Client(replace(settings, access_token="other"), http).download_media(found)


async def test_an_address_elsewhere_is_not_asked(
    client: Client, wa: WhatsApp, voice: Event
) -> None:
    wa.faults.add(Fault(kind="wrong", times=1))
    with pytest.raises(Invalid, match="host of media_hosts"):
        await client.download_media(await client.get_media(media_id(voice)))


def at(url: str) -> StoredMedia:
    return StoredMedia(id="1", url=url, mime_type="audio/ogg", size=1, sha256="")


@pytest.mark.parametrize(
    "url",
    [
        "http://lookaside.fbsbx.com/x",
        "https://example.com/x",
        "https://notfbsbx.com/x",
        "https://fbsbx.com.example.com/x",
        "https://fbsbx.com@example.com/x",
        "https://user:word@lookaside.fbsbx.com/x",
        "https://example.com\\.fbsbx.com@example.com/x",
        "https://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "//lookaside.fbsbx.com/x",
        "https://[::1/x",
        "https://a:99999999/x",
        "x" * 100_000,
        "",
    ],
)
async def test_the_token_goes_to_metas_hosts_only(client: Client, wa: WhatsApp, url: str) -> None:
    with pytest.raises(Invalid, match="address of a file must be"):
        await client.download_media(at(url))
    assert wa.ledger.entries == []


async def test_another_port_of_the_same_machine_is_another_host(client: Client) -> None:
    async with serving(Starlette()) as url:
        with pytest.raises(Invalid, match="host of media_hosts"):
            await client.download_media(at(f"{url}/x"))


Files = Callable[[Request], Response]


@asynccontextmanager
async def host(files: Files, http: httpx.AsyncClient) -> AsyncIterator[tuple[str, Client]]:
    """Where files are, and a client that takes at most a thousand bytes."""

    async def answer(request: Request) -> Response:
        assert request.headers["authorization"] == "Bearer s3cret-token"
        return files(request)

    async with serving(Starlette(routes=[Route("/{path:path}", answer)])) as url:
        settings = Settings(
            access_token="s3cret-token", phone_number_id="1", base_url=url, most_media_bytes=1000
        )
        yield url, Client(settings, http)


async def test_a_redirect_on_the_same_host_is_followed(http: httpx.AsyncClient) -> None:
    def files(request: Request) -> Response:
        is_last = request.url.path == "/3"
        return (
            Response(SOUND[:9])
            if is_last
            else RedirectResponse(f"/{int(request.url.path[1:]) + 1}")
        )

    async with host(files, http) as (url, client):
        assert await client.download_media(at(f"{url}/0")) == SOUND[:9]


async def test_redirects_come_to_an_end(http: httpx.AsyncClient) -> None:
    async with host(lambda _request: RedirectResponse("/again"), http) as (url, client):
        with pytest.raises(Permanent, match="more than 3 times"):
            await client.download_media(at(f"{url}/0"))


@pytest.mark.parametrize(
    "to", ["https://lookaside.fbsbx.com/x", "https://example.com/", "//example.com/"]
)
async def test_a_redirect_to_another_host_is_not_followed(http: httpx.AsyncClient, to: str) -> None:
    def files(_request: Request) -> Response:
        return Response(status_code=302, headers={"location": to})

    async with host(files, http) as (url, client):
        with pytest.raises(Permanent, match="must not be redirected to another host"):
            await client.download_media(at(f"{url}/0"))


async def test_a_redirect_to_nowhere_is_no_answer(http: httpx.AsyncClient) -> None:
    def files(_request: Request) -> Response:
        return Response(status_code=302, headers={"location": "http://[::/"})

    async with host(files, http) as (url, client):
        with pytest.raises(Retryable):
            await client.download_media(at(f"{url}/0"))


async def test_a_file_that_grows_too_large_is_given_up(http: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0)  # whoever has gone must be heard
            yield b"x" * 500

    for files in (
        lambda _request: Response(b"x" * 1001),
        lambda _request: StreamingResponse(endless()),
    ):
        async with host(files, http) as (url, client):
            with pytest.raises(MediaTooLarge, match="at most 1000 bytes"):
                await client.download_media(at(f"{url}/0"))


async def test_as_much_as_is_allowed_is_fetched(http: httpx.AsyncClient) -> None:
    async with host(lambda _request: Response(b"x" * 1000), http) as (url, client):
        assert len(await client.download_media(at(f"{url}/0"))) == 1000


async def test_a_host_in_trouble_is_asked_again(http: httpx.AsyncClient) -> None:
    async with host(lambda _request: Response(status_code=503), http) as (url, client):
        with pytest.raises(Retryable, match="answered 503"):
            await client.download_media(at(f"{url}/0"))
