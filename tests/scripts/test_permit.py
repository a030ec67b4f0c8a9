"""permit.lua, and that it is asked for every command there is."""

from __future__ import annotations

import re
from importlib import resources

from faena.engine.permission import SCRIPTED, asked
from tests._support.rig import Rig


def test_every_command_of_every_script_is_asked_for() -> None:
    lua = resources.files("faena.engine") / "lua"
    files = sorted(lua.rglob("*.lua"))
    text = "\n".join(one.read_text("utf-8") for one in files if one.name.endswith(".lua"))
    called = set(re.findall(r"\b(?:call|raw|pcall\(call, )\(?'([A-Z]+)'", text))
    called |= set(re.findall(r"'(COPY|RENAME|HMGET|ZMSCORE|SMISMEMBER)'", text))
    assert called == set(SCRIPTED)


async def test_nothing_is_said_against_a_user_who_may_do_everything(rig: Rig) -> None:
    await rig.add("a")
    await rig.remember()
    number, lines = asked("test", is_beside_too=True)
    assert await rig.engine.ask("permit", "q", *lines, number=number) == [[], []]
    assert await rig.is_untouched()


async def test_keys_of_another_type_are_named(rig: Rig) -> None:
    await rig.engine.command("RPUSH", "q", "ready", "x")
    number, lines = asked("test")
    reply = await rig.engine.ask("permit", "q", *lines, number=number)
    assert reply == [[], [b"ready", b"list"]]
    await rig.engine.command("DEL", "q", "ready")
