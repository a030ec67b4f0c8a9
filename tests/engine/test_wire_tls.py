"""The wire over TLS: a real handshake with a real certificate, judged as the URL says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faena.engine.wire.address import Address
from faena.engine.wire.wire import Wire
from faena.errors import ConfigError, StoreError, StoreRejected
from tests._support.lua import COUNT
from tests._support.tls import Authority
from tests._support.valkey import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


async def _count(url: str, patience_s: float = 5) -> int:
    wire = Wire(Address.parse(url))
    try:
        return await wire.run(COUNT, ["k"], [], patience_s=patience_s)
    finally:
        await wire.close()


async def test_a_trusted_certificate_is_accepted(server: Server, authority: Authority) -> None:
    async with authority.terminator(server.port) as proxy:
        assert await _count(f"valkeys://127.0.0.1:{proxy.port}?ca={authority.ca}") >= 1


async def test_an_unknown_authority_is_refused_at_once(
    server: Server, authority: Authority
) -> None:
    async with authority.terminator(server.port) as proxy:
        with pytest.raises(StoreRejected, match="certificate"):
            await _count(f"rediss://127.0.0.1:{proxy.port}")


async def test_a_certificate_for_another_host_is_refused_unless_only_the_authority_counts(
    server: Server, authority: Authority
) -> None:
    async with authority.terminator(server.port, name="elsewhere.test") as proxy:
        url = f"rediss://127.0.0.1:{proxy.port}?ca={authority.ca}"
        with pytest.raises(StoreRejected, match="certificate"):
            await _count(url)
        assert await _count(f"{url}&verify=ca") >= 1


async def test_verification_can_be_switched_off(server: Server, authority: Authority) -> None:
    async with authority.terminator(server.port, name="elsewhere.test") as proxy:
        assert await _count(f"rediss://127.0.0.1:{proxy.port}?verify=none") >= 1


async def test_a_client_certificate_is_shown_where_one_is_wanted(
    server: Server, authority: Authority, tmp_path: Path
) -> None:
    cert = authority.client_cert(tmp_path)
    async with authority.terminator(server.port, wants_cert=True) as proxy:
        url = f"rediss://127.0.0.1:{proxy.port}?ca={authority.ca}"
        assert await _count(f"{url}&cert={cert}") >= 1
        with pytest.raises(StoreError):
            await _count(url, patience_s=0)


async def test_a_plain_server_behind_a_tls_url_is_an_error_in_time(server: Server) -> None:
    wire = Wire(Address.parse(f"rediss://127.0.0.1:{server.port}"), call_timeout_s=0.5)
    with pytest.raises(StoreError):
        await wire.run(COUNT, ["k"], [], patience_s=0)
    await wire.close()


def test_a_certificate_file_that_cannot_be_read_is_named_before_anything_is_dialled() -> None:
    with pytest.raises(ConfigError, match=r"/nowhere/ca\.pem"):
        Wire(Address.parse("rediss://127.0.0.1?ca=/nowhere/ca.pem"))
