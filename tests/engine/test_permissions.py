"""What a user of the broker may do, asked before the first write and told in words that mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from faena import Faena
from faena.engine import Address, Wire
from faena.errors import StoreRejected
from faena.inspection.doctor import examine
from tests._support.valkey import Server


@pytest.fixture
def server(tcp_server: Server) -> Server:
    return tcp_server


@pytest.fixture
def guest(server: Server) -> Iterator[Callable[..., str]]:
    def become(*rules: str) -> str:
        with server.client() as client:
            client.execute_command("ACL", "SETUSER", "guest", "reset", "on", ">sesame", *rules)
        return f"redis://guest:sesame@127.0.0.1:{server.port}"

    yield become
    with server.client() as client:
        client.execute_command("ACL", "DELUSER", "guest")


Guest: TypeAlias = Callable[..., str]

DENIED = {
    "a command": (("~*", "&*", "+@all", "-zadd"), "run zadd for shop:*", "+zadd ~shop:* &shop:*"),
    "two": (("~*", "&*", "+@all", "-xadd", "-hset"), "run hset, xadd for", "+hset +xadd"),
    "to write keys": (("%R~*", "~other:*", "&*", "+@all"), "permitted all keys shop:*", "~shop:*"),
    "channels": (("~*", "&other", "+@all"), "run publish for shop:*", "&shop:*"),
}


@pytest.mark.parametrize(("rules", "words", "mends"), DENIED.values(), ids=DENIED)
async def test_what_a_user_may_not_do_is_told_before_anything_is_written(
    guest: Guest, server: Server, rules: tuple[str, ...], words: str, mends: str
) -> None:
    app = Faena("shop", guest(*rules))

    @app.queue("q").task
    async def nothing() -> None: ...

    for call in (nothing.enqueue, nothing.handle("x").cancel, nothing.handle("x").rerun):
        with pytest.raises(StoreRejected) as told:
            await call()
        assert words in str(told.value)
        assert mends in str(told.value)
    with server.client() as client:
        assert client.keys() == []
    if "%R~*" not in rules:
        findings = {one.name: one for one in await app.doctor()}
        assert findings["permissions"].level == "fail"
        assert mends in (findings["permissions"].advice or "")
    await app.close()


@pytest.mark.parametrize(
    "verb", ["bzpopmin", "smembers", "subscribe", "wait", "waitaof", "xread", "zrevrange"]
)
async def test_the_doctor_asks_for_what_is_sent_without_a_script_as_well(
    guest: Guest, verb: str
) -> None:
    async with Faena("shop", guest("~*", "&*", "+@all", f"-{verb}")) as app:
        findings = {one.name: one for one in await app.doctor()}
    assert findings["permissions"].level == "fail"
    assert f"ACL SETUSER guest +{verb} " in (findings["permissions"].advice or "")


async def test_what_is_mended_as_the_message_says_works(guest: Guest, server: Server) -> None:
    url = guest("~shop:*", "&shop:*", "+@all", "-zadd", "-hset", "-publish", "-acl")
    app = Faena("shop", url)

    @app.queue("q").task
    async def nothing() -> None: ...

    with pytest.raises(StoreRejected) as told:
        await nothing.enqueue()
    rules = str(told.value).partition("ACL SETUSER guest ")[2].split()
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "guest", *rules)
    assert (await nothing.enqueue()).status == "created"
    await app.run_worker(until_empty=True)
    findings = {one.name: one for one in await app.doctor()}
    assert findings["permissions"].level == "ok"
    await app.queues["q"].obliterate(force=True)
    await app.close()


async def test_a_key_of_another_program_is_told_before_anything_is_written(
    server: Server,
) -> None:
    app = Faena("shop", server.url)

    @app.queue("q").task
    async def nothing() -> None: ...

    with server.client() as client:
        client.rpush("shop:{q}:ready", "x")
        with pytest.raises(StoreRejected, match=r"\{q\}:ready must be a zset, is a list: another"):
            await nothing.enqueue()
        assert len(client.keys()) == 1
        client.flushall()
    assert (await nothing.enqueue()).status == "created"
    await app.queues["q"].obliterate(force=True)
    await app.close()


async def test_the_doctor_tells_what_to_do_about_a_key_of_another_program(server: Server) -> None:
    async with Faena("shop", server.url) as app:
        with server.client() as client:
            client.rpush("shop:{doctor}:ready", "x")
        findings = {one.name: one for one in await app.doctor()}
    found = findings["permissions"]
    assert found.value == "key shop:{doctor}:ready must be a zset, is a list"
    assert (found.advice or "").startswith("another program wrote it; remove the key")


async def test_a_permission_that_is_taken_away_later_is_no_fault_of_a_script(
    guest: Guest, server: Server
) -> None:
    app = Faena("shop", guest("~*", "&*", "+@all"))

    @app.queue("q").task
    async def nothing() -> None: ...

    receipt = await nothing.enqueue(delay="1h")
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "guest", "-zrem")
    with pytest.raises(StoreRejected, match=r"lacks a permission.*doctor.*zrem"):
        await receipt.handle.cancel()
    assert await receipt.handle.state() == "delayed"
    with server.client() as client:
        client.flushall()
    await app.close()


async def test_a_user_who_may_only_read_can_look(guest: Guest, server: Server) -> None:
    owner = Faena("shop", server.url)

    @owner.queue("q").task
    async def nothing() -> None: ...

    receipt = await nothing.enqueue()
    rules = ("~*", "&*", "+@read", "+@connection", "+fcall", "+time", "+info")
    reader = Faena("shop", guest(*rules))
    handle = reader.queue("q").handle(receipt.id)
    assert await handle.state() == "ready"
    assert (await reader.queues["q"].counts())["ready"] == 1
    wire = Wire(Address.parse(server.url))
    assert {one.name for one in await examine(wire, namespace="shop")} >= {"permissions"}
    await wire.close()
    await owner.queues["q"].obliterate(force=True)
    await owner.close()
    await reader.close()
