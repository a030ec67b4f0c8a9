"""Saved views are kept by name, so many of each owner."""

from __future__ import annotations

from faena.engine.calls.access import SHARD, AccessCalls
from tests._support.rig import Rig


async def test_views_are_kept_changed_and_removed_up_to_a_number(rig: Rig) -> None:
    calls = AccessCalls(rig.engine)
    assert await calls.keep_view("ana", "dead", "state:dead", 2)
    assert await calls.keep_view("ana", "mail", "queue:mail", 2)
    assert not await calls.keep_view("ana", "more", "x", 2)
    assert await calls.keep_view("ana", "mail", "queue:post", 2)
    assert await calls.keep_view("@", "more", "x", 2)
    assert await calls.views("ana") == {"dead": "state:dead", "mail": "queue:post"}
    assert await calls.keep_view("ana", "dead", "", 2)
    assert await calls.keep_view("ana", "gone", "", 2)
    assert await calls.views("ana") == {"mail": "queue:post"}
    for whose in ("ana", "@"):
        await rig.engine.command("DEL", SHARD, f"views:{whose}")
