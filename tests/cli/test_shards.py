"""`faena shards`, `faena reshard`, `faena tenants dedicate`: where a queue lives."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from faena import Faena
from faena.engine.scripts import Turn
from tests.cli.conftest import Cli, listed

app = Faena("home-counter", "redis://127.0.0.1:1/0")
mail = app.queue("mail", fair=True)
plain = app.queue("plain")
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")
TENANTS = [f"t{number}" for number in range(12)]


@mail.task
async def send(number: int) -> int:
    return number


def fill() -> None:
    async def work() -> None:
        async with app:
            for tenant in TENANTS:
                await send.enqueue_many(range(10), tenant=tenant)

    asyncio.run(work())


def document(cli: Cli, *args: str) -> Any:
    code, out, _ = cli(*args, "--json")
    assert code == 0
    return listed(json.loads(out))


def test_a_queue_is_spread_and_shown(cli: Cli) -> None:
    fill()
    code, out, _ = cli("reshard", "mail", "3", "--by", "ana")
    assert (code, out) == (0, "mail has 3 shards and has moved\n")
    (view,) = document(cli, "shards", "mail")
    assert (view["shards"], view["change"]) == (3, None)
    assert set(view["jobs"]) == {"mail", "mail/1", "mail/2"}
    assert sum(view["jobs"].values()) == 120
    code, out, _ = cli("shards")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()[2:]] == [
        "mail",
        "mail/1",
        "mail/2",
        "plain",
    ]
    code, _, err = cli("audit", TARGET)
    assert (code, err) == (0, "")


def test_a_tenant_is_given_a_queue_of_its_own_and_comes_back(cli: Cli) -> None:
    fill()
    view = document(cli, "tenants", "dedicate", "mail", "t3", "--by", "ana")
    assert (view["is_dedicated"], view["live"]) == (True, 10)
    code, out, _ = cli("tenants", "mail", "t3")
    assert code == 0
    assert "of its own" in out
    (seen,) = document(cli, "shards", "mail")
    assert seen["dedicated"] == ["t3"]
    assert seen["jobs"] == {"mail": 110, "mail/@t3": 10}
    view = document(cli, "tenants", "rejoin", "mail", "t3")
    assert (view["is_dedicated"], view["live"]) == (False, 10)


def test_a_change_that_meets_another_says_where_to_see_it(cli: Cli) -> None:
    async def begin() -> None:
        async with app:
            await send.enqueue(1, tenant="t3")
            engine = (await app.runtime()).engine
            assert (await engine.exchange("mail", "w", "w", Turn("call00000001", 1))).claimed
            await mail.tenant("t3").dedicate(wait="0s")

    asyncio.run(begin())
    code, _, err = cli("tenants", "dedicate", "mail", "t4", "--wait", "50ms")
    assert code == 1
    assert "(own shard for tenant t3) did not end in time" in err
    assert err.endswith("; `faena shards` shows what is moving\n")
    code, _, err = cli("reshard", "mail", "2", "--wait", "1500ms")
    assert code == 1
    said = "own shard for tenant t3: mail 1, mail/@t3 0\n"  # it waits, and says for what
    assert err.startswith(said)
    assert "nothing was started" in err


def test_what_cannot_be_done_is_said_and_changes_nothing(cli: Cli) -> None:
    fill()
    assert cli("reshard", "mail", "4")[0] == 0
    before = document(cli, "shards", "mail")
    code, out, err = cli("reshard", "mail", "2")
    assert (code, out) == (1, "")
    assert "must keep its 4 shards while those to be retired have live jobs" in err
    assert err.endswith("; `faena shards` shows how many there are\n")
    assert cli("reshard", "mail", "many")[0] == 2
    assert cli("reshard", "mail", "0")[0] == 2
    code, _, err = cli("reshard", "plain", "2")
    assert code == 2
    assert "has no lane for jobs without a tenant" in err
    assert document(cli, "shards", "mail") == before
