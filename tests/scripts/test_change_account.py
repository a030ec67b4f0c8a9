"""An account is changed as its author has seen it, and an owner stays."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from faena.engine.calls.access import SHARD, AccessCalls, AccountChanged, LastOwner
from tests._support.rig import Rig

OWNER = msgspec.msgpack.encode({"role": "owner"})
OFF = msgspec.msgpack.encode({"role": "owner", "is_off": True})
VIEWER = msgspec.msgpack.encode({"role": "viewer"})


@pytest.fixture
async def calls(rig: Rig) -> AsyncIterator[AccessCalls]:
    yield AccessCalls(rig.engine)
    await rig.engine.command("DEL", SHARD, "accounts")


async def test_an_account_is_made_changed_and_removed(calls: AccessCalls) -> None:
    await calls.change_account("user:ana", b"", OWNER)
    await calls.change_account("user:leo", b"", VIEWER)
    await calls.change_account("user:leo", VIEWER, OWNER)
    await calls.change_account("user:ana", OWNER, b"")
    assert await calls.accounts() == {"user:leo": OWNER}


async def test_the_same_call_again_is_answered_alike(calls: AccessCalls) -> None:
    for _ in range(2):
        await calls.change_account("user:leo", b"", VIEWER)
    for _ in range(2):
        await calls.change_account("user:leo", VIEWER, b"")


async def test_what_another_has_changed_is_refused(calls: AccessCalls) -> None:
    await calls.change_account("user:leo", b"", VIEWER)
    with pytest.raises(AccountChanged):
        await calls.change_account("user:leo", b"", OWNER)
    with pytest.raises(AccountChanged):
        await calls.change_account("user:leo", OFF, b"")
    assert await calls.account("user:leo") == VIEWER


@pytest.mark.parametrize("change", [b"", VIEWER, OFF])
async def test_the_last_owner_stays(calls: AccessCalls, change: bytes) -> None:
    await calls.change_account("user:ana", b"", OWNER)
    await calls.change_account("user:off", b"", OFF)
    await calls.change_account("token:1", b"", OWNER)
    with pytest.raises(LastOwner):
        await calls.change_account("user:ana", OWNER, change)
    await calls.change_account("user:leo", b"", OWNER)
    await calls.change_account("user:ana", OWNER, change)
