"""What tabs that are open hear when a reading fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing

import pytest

from faena.errors import StoreUnavailable
from faena.web.live import Hub


@pytest.mark.parametrize("fault", [StoreUnavailable("gone"), ValueError("a fault of the page")])
async def test_a_reading_that_fails_is_told_and_read_again(fault: Exception) -> None:
    answers = iter([fault])

    async def read() -> Mapping[str, str]:
        for error in answers:
            raise error
        return {"depth": "1"}

    hub, heard = Hub(tick_s=0.0), list[bytes]()
    async with asyncio.timeout(60), aclosing(hub.listen("page", read)) as tab:
        async for part in tab:
            heard.append(part)
            if b"depth" in part:
                break
    await hub.close()
    assert heard[1] == b"event: lost\ndata: {}\n\n"
    assert heard[2] == b"event: found\ndata: {}\n\n"
