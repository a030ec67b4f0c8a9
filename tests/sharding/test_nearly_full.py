"""No move begins that a full broker could not finish."""

from __future__ import annotations

import pytest

from faena import Faena
from faena.errors import StoreRejected
from tests._support.valkey import Server


async def test_nothing_is_moved_on_a_broker_that_is_nearly_full() -> None:
    """Jobs that are moving are not run, and a full broker could not take them in."""
    with Server("appendonly no", unix=True) as server:
        async with Faena("shop", server.url) as app:
            queue = app.queue("mail", fair=True)

            @queue.task
            async def send() -> None: ...

            await send.enqueue(tenant="acme")
            with server.client() as client:
                used = int(client.info("memory")["used_memory"])
                client.config_set("maxmemory", used + 20_000)
                with pytest.raises(StoreRejected, match="nothing was started: raise maxmemory"):
                    await queue.tenant("acme").dedicate()
                with pytest.raises(StoreRejected, match="cannot be moved now"):
                    await queue.reshard(2)
                assert not (await queue.shards()).is_moving
                client.config_set("maxmemory", 0)
            await queue.tenant("acme").dedicate()
            assert (await queue.shards()).dedicated == ("acme",)
