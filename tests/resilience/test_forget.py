"""What no program declares any more can be forgotten; what this program declares cannot."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena import Breaker, Budget, Faena, Price, UpstreamUnavailable
from faena.errors import ConfigError
from tests._support.eventually import eventually
from tests._support.valkey import Server


@pytest.fixture
async def old(shop: Faena, valkey: Server, namespace: str) -> AsyncIterator[Faena]:
    """A program that ran before, in the same namespace."""
    del shop  # removes the keys at the end
    app = Faena("office", valkey.url, namespace=namespace)
    afip = app.upstream("afip", prices=[Price("call", "1 USD")], breaker=Breaker(volume=1))
    app.total_budgets([Budget("5 USD")])
    app.feature("invoicing", upstreams=[afip])
    app.level("sale", {"invoicing": "offline"})

    @afip
    async def request() -> None:
        raise TimeoutError("no answer")

    async with app:
        with pytest.raises(TimeoutError):
            await request()
        await app.features()
        await (await app.runtime()).gate.flush()
        yield app


@pytest.mark.usefixtures("old")
async def test_upstreams_of_earlier_programs_are_forgotten(shop: Faena) -> None:
    assert [one.state for one in await shop.upstream_views()] == ["open"]
    await shop.upstream_control.forget("afip", by="ana")
    assert await shop.upstream_views() == []
    (service,) = (await shop.cost_report()).services
    assert (service.upstream, str(service.spent)) == ("afip", "1.00 USD"), "costs are kept"
    with pytest.raises(ConfigError, match="upstream must be one that a program has declared"):
        await shop.upstream_control.forget("afip")


@pytest.mark.usefixtures("old")
async def test_features_and_levels_of_earlier_programs_are_forgotten(shop: Faena) -> None:
    await shop.features.forget("invoicing", by="ana")
    await shop.features.forget_level("sale", by="ana")
    view = await shop.features()
    assert (view.features, view.levels) == ({}, {})
    shop.feature("payments")
    with pytest.raises(ConfigError, match="did you mean 'payments'"):
        await shop.features.forget("payment")
    with pytest.raises(ConfigError, match="level"):
        await shop.features.forget_level("sale")


@pytest.mark.usefixtures("old")
async def test_total_budgets_of_earlier_programs_are_forgotten(shop: Faena) -> None:
    assert [one.upstream for one in await shop.budget_views()] == [None]
    assert await shop.upstream_control.forget_totals(by="ana")
    assert await shop.budget_views() == []
    assert not await shop.upstream_control.forget_totals(by="ana")


async def test_what_this_program_declares_is_refused(old: Faena) -> None:
    with pytest.raises(ConfigError, match=r"remove app\.upstream\('afip'\) from the code first"):
        await old.upstream_control.forget("afip")
    with pytest.raises(ConfigError, match=r"remove app\.total_budgets\(…\) from the code first"):
        await old.upstream_control.forget_totals()
    with pytest.raises(ConfigError, match=r"remove app\.feature\('invoicing', …\)"):
        await old.features.forget("invoicing")
    with pytest.raises(ConfigError, match=r"remove app\.level\('sale', …\)"):
        await old.features.forget_level("sale")
    assert len(await old.upstream_views()) == 1


async def test_a_program_that_still_runs_declares_it_again(old: Faena, shop: Faena) -> None:
    await shop.upstream_control.forget("afip")
    await shop.features.forget("invoicing")

    async def may_call() -> bool:
        try:
            async with old.upstreams["afip"].call():
                return True
        except UpstreamUnavailable:  # its breaker was open, and the message has not come yet
            return False

    await eventually(may_call)
    await old.features()
    assert [one.name for one in await shop.upstream_views()] == ["afip"]
    assert [*(await shop.features()).features] == ["invoicing"]
