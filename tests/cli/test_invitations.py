"""`faena users invite`: a link with which a person sets a password."""

from __future__ import annotations

import asyncio
import json

import pytest

from faena import Faena
from faena.web.access.account import Accounts
from faena.web.access.invitation import Invitations
from tests.cli.conftest import Cli

app = Faena("inviting", "redis://127.0.0.1:1/0")
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")


def accept(secret: str, password: str) -> str | None:
    async def work() -> str | None:
        async with app:
            engine = (await app.runtime()).engine
            return await Invitations(engine, Accounts(engine)).accept(secret, password)

    return asyncio.run(work())


def test_who_is_invited_gets_a_link_that_works_once(cli: Cli) -> None:
    code, out, err = cli("users", "invite", "ana", "--role", "owner", "--address", "https://a.b/c/")
    assert code == 0, err
    link, _, secret = out.strip().rpartition("/")
    assert link == "https://a.b/c/invitation"
    assert accept(secret, "a long word 7") == "ana"
    assert accept(secret, "another word 8") is None
    code, _, err = cli("users", "invite", "ana")
    assert code == 1
    assert "there is one already" in err


def test_another_link_is_made_for_a_user_who_is_there(cli: Cli) -> None:
    code, _, err = cli("users", "invite", "ana", "--again")
    assert code != 0
    assert "there must be a user" in err
    cli("users", "invite", "ana", "--role", "admin")
    _, out, _ = cli("users", "invite", "ana", "--again", "--json")
    told = json.loads(out)
    assert told["user"] == "ana"
    assert accept(told["link"].rpartition("/")[2], "a long word 7") == "ana"
