"""Reads that a cache answers when the source is slow or down; one call at a time everywhere."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from faena import CachedValue, Faena
from faena.errors import ConfigError, PayloadError, SourceUnavailable
from faena.outcomes import UpstreamUnavailable
from faena.resilience.breaker import Breaker
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.falling import Down, trip
from tests._support.forked import Forked
from tests._support.valkey import Server


class Source:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.calls = 0
        self.is_down = False
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self) -> int:
        self.calls += 1
        call = self.calls
        await self.go.wait()
        if self.is_down:
            raise Down("no database")
        return call


async def test_a_fresh_value_is_returned_without_a_call(app: Faena) -> None:
    source = Source()
    first = await app.cached_read("k", source)
    again = await app.cached_read("k", source)
    assert (first.value, first.is_stale, again.value, again.is_stale) == (1, False, 1, False)
    assert again.age >= 0
    assert source.calls == 1


async def test_a_stale_value_is_returned_at_once_and_read_anew_behind(app: Faena) -> None:
    source = Source()
    await app.cached_read("k", source, fresh="0s")
    source.go.clear()
    stale = await app.cached_read("k", source, fresh="0s")
    assert (stale.value, stale.is_stale) == (1, True)
    again = await app.cached_read("k", source, fresh="0s")  # while it is being read
    assert (again.value, source.calls) == (1, 2)
    source.go.set()

    async def is_new() -> bool:
        return (await app.cached_read("k", source)).value == 2

    await eventually(is_new)
    assert source.calls == 2


async def test_a_hundred_readers_of_a_missing_value_cause_one_call(
    valkey: Server, namespace: str
) -> None:
    source = Source()
    source.go.clear()
    apps = [Faena("shop", valkey.url, namespace=namespace) for _ in range(4)]
    reads = [asyncio.create_task(app.cached_read("k", source)) for app in apps for _ in range(25)]
    await eventually(lambda: source.calls == 1)
    source.go.set()
    assert {(await one).value for one in reads} == {1}
    assert source.calls == 1
    for app in apps:
        await app.close()


async def test_while_the_source_is_down_a_stale_value_is_good_enough_and_asked_for_seldom(
    app: Faena,
) -> None:
    source = Source()
    await app.cached_read("k", source, fresh="0s")
    source.is_down = True
    values = [await app.cached_read("k", source, fresh="0s") for _ in range(50)]
    assert {(one.value, one.is_stale) for one in values} == {(1, True)}
    await eventually(lambda: source.calls >= 2)
    assert source.calls <= 5, "one call, and no other for a second"


async def test_without_a_value_the_error_of_the_source_is_raised(app: Faena) -> None:
    source = Source()
    source.is_down = True
    with pytest.raises(Down):
        await app.cached_read("k", source)
    with pytest.raises(SourceUnavailable, match="Down: no database"):
        await app.cached_read("k", source)
    assert source.calls == 1


async def test_a_source_that_is_too_slow_is_given_up(app: Faena) -> None:
    source = Source()
    source.go.clear()
    with pytest.raises(SourceUnavailable, match="no answer within 50ms"):
        await app.cached_read("k", source, timeout="50ms")


async def test_a_value_beyond_its_bound_is_not_returned(app: Faena) -> None:
    source = Source()
    await app.cached_read("k", source, fresh="1ms", stale="1ms")
    source.is_down = True

    async def is_over() -> bool:
        try:
            return (await app.cached_read("k", source, fresh="1ms", stale="1ms")).age < 0
        except (Down, SourceUnavailable):
            return True

    await eventually(is_over)


async def test_an_upstream_that_is_out_is_not_called(app: Faena, shop: Faena) -> None:
    database = shop.upstream("database", breaker=Breaker(volume=4, open="10m"))
    source = Source()
    await app.cached_read("k", source, fresh="0s", upstream=database)
    await trip(database)
    stale = await app.cached_read("k", source, fresh="0s", upstream=database)
    assert (stale.value, stale.is_stale) == (1, True)
    with pytest.raises(UpstreamUnavailable):
        await app.cached_read("other", source, upstream=database)
    assert source.calls == 1


class Org(msgspec.Struct):
    name: str


async def test_values_have_their_type_also_when_they_were_just_read(app: Faena) -> None:
    async def load() -> dict[str, str]:
        return {"name": "acme"}

    for _ in range(2):
        found: CachedValue[Org] = await app.cached_read("k", load, result=Org)
        assert found.value == Org("acme")


async def test_tenants_have_values_of_their_own(app: Faena) -> None:
    source = Source()
    values = [(await app.cached_read("k", source, tenant=one)).value for one in ("a", "b", "a")]
    assert values == [1, 2, 1]


async def test_a_value_that_is_too_large_is_an_error(app: Faena) -> None:
    async def load() -> str:
        return "x" * 2_000_000

    with pytest.raises(PayloadError, match="must be at most 1048576 bytes"):
        await app.cached_read("k", load)


async def test_without_a_broker_the_source_is_asked(tmp_path: Path) -> None:
    app, source = Faena("shop", f"unix://{tmp_path}/none.sock", patience="50ms"), Source()
    with pytest.raises(Exception, match="reach"):
        await app.connect()
    async with asyncio.timeout(60):
        assert (await app.cached_read("k", source, timeout="10m")).value == 1
    await app.close()


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"key": "a b"}, "key must be"),
        ({"fresh": "2h"}, "stale must be at least fresh"),
        ({"fresh": 5}, "fresh must be"),
        ({"timeout": "0s"}, "timeout must be"),
        ({"upstream": "afip"}, "upstream must be a Upstream"),
        ({"tenant": ""}, "tenant must be"),
        ({"fetch": 7}, "fetch must be a function"),
        ({"fetch": lambda: 7}, "fetch must return an awaitable"),
    ],
)
async def test_terms_that_make_no_sense_are_refused(
    app: Faena, terms: dict[str, Any], words: str
) -> None:
    source: Callable[[], Awaitable[int]] = Source()
    given = {"key": "k", "fetch": source, **terms}
    with pytest.raises(ConfigError, match=words):
        await app.cached_read(**given)


# -- kill -9 ---------------------------------------------------------------------------------------


def read_and_die(url: str, namespace: str) -> None:
    """Be killed while the source is asked."""

    async def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def main() -> None:
        async with Faena("shop", url, namespace=namespace) as app:
            await app.cached_read("k", die, timeout="1s")

    asyncio.run(main())


async def test_the_lease_of_a_killed_reader_ends(
    app: Faena, valkey: Server, namespace: str, tmp_path: Path
) -> None:
    reader = Forked(read_and_die, valkey.url, namespace, log=tmp_path / "log")
    assert await asyncio.to_thread(reader.wait, PATIENCE_S) == -signal.SIGKILL
    found = await app.cached_read("k", Source(), timeout="60s")
    assert found.value == 1


async def test_a_failed_read_is_told_in_words_that_are_not_repeated(
    app: Faena, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source()
    source.go.clear()
    for _ in range(2):  # the second is told what the first has met
        with pytest.raises(SourceUnavailable) as caught:
            await app.cached_read("k", source, timeout="50ms")
        assert str(caught.value) == "k cannot be read: no answer within 50ms"
    assert "k cannot be read: no answer within 50ms" in caplog.messages
    source.go.set()
