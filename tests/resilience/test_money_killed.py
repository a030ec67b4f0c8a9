"""Processes that spend one budget at once, some of which are killed while they hold money."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from faena import Budget, BudgetView, Faena, Price, UpstreamUnavailable
from faena.resilience import gate
from faena.resilience.upstream import Upstream
from tests._support.eventually import eventually
from tests._support.forked import Forked
from tests._support.valkey import Server

AT_ONCE = 50
MOST_EACH = 1_000


def build(url: str, amount: int) -> tuple[Faena, Upstream]:
    """An upstream of which every unit costs a millionth."""
    app = Faena("shop", url)
    ai = app.upstream(
        "ai",
        timeout="500ms",
        prices=[Price("unit", "0.000001 USD")],
        estimate={"unit": MOST_EACH},
        budgets=[Budget(f"{amount / 10**6:.6f} USD", per="month")],
    )
    return app, ai


def spend(url: str, amount: int, calls: int, seed: int, ledger: Path) -> None:
    """Make so many calls, and write down what each has cost, before anybody is told."""
    gate._MARGIN_US = 500_000  # pyright: ignore[reportPrivateUsage] - sooner taken for dead
    dice, numbers = random.Random(seed), iter(range(calls))

    async def one_by_one(ai: Upstream, file: int) -> None:
        for _ in numbers:
            most = dice.randint(1, MOST_EACH)
            cost = dice.randint(0, most)
            try:
                async with ai.call(estimate={"unit": most}) as call:
                    os.write(file, b"%d\n" % cost)
                    call.spend(unit=cost)
                    await asyncio.sleep(0)
            except UpstreamUnavailable as error:
                if error.reason not in {"budget", "reserved"}:
                    raise
                os.write(file, b"-1\n")

    async def main() -> None:
        app, ai = build(url, amount)
        async with app:
            file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            await asyncio.gather(*[one_by_one(ai, file) for _ in range(AT_ONCE)])

    asyncio.run(main())


def written(ledger: Path) -> Iterator[int]:
    """What calls have cost; -1 for each that was refused."""
    return map(int, ledger.read_text().splitlines()) if ledger.exists() else iter(())


async def compete(
    url: str, folder: Path, *, processes: int, killed: int, calls: int, amount: int
) -> dict[str, int]:
    """Let processes spend one budget, kill some of them, and account for every millionth."""
    ledgers = [folder / f"ledger{i}" for i in range(processes)]
    app, ai = build(url, amount)
    async with app:
        await app.budget_views()
        each, looks, most = calls // processes, 0, 0
        plans = [each * 100 if i < killed else each for i in range(processes)]
        running = [
            Forked(spend, url, amount, plans[i], i, ledgers[i], log=folder / f"log{i}")
            for i in range(processes)
        ]
        lost: list[int] = []
        while any(one.code is None for one in running):
            (view,) = await app.budget_views()
            used = view.spent.micro + view.reserved.micro
            assert used <= amount, "more was promised than there is"
            looks, most = looks + 1, max(most, used)
            for one, ledger in zip(running[:killed], ledgers, strict=False):
                if one.code is None and len([*written(ledger)]) > each // 2:
                    one.kill()
                    lost.append((await app.budget_views())[0].reserved.micro)
        for one in running[killed:]:
            assert one.wait(1) == 0
        view = await _settled(app)
        told = [sum(cost for cost in written(ledger) if cost > 0) for ledger in ledgers]
        assert view.spent.micro <= amount
        assert sum(told[killed:]) <= view.spent.micro <= sum(told)
        await _spend_the_rest(app, ai, view)
    refused = sum(cost < 0 for ledger in ledgers for cost in written(ledger))
    made = sum(1 for ledger in ledgers for _ in written(ledger))
    return {"asked": made, "refused": refused, "looks": looks, "most": most, "told": sum(told)} | {
        "spent": view.spent.micro,
        "held at kills": sum(lost),
    }


async def _settled(app: Faena) -> BudgetView:
    """The budget, when the money of those that were killed is back."""

    async def is_back() -> bool:
        return not (await app.budget_views())[0].reserved.micro

    await eventually(is_back)
    return (await app.budget_views())[0]


async def _spend_the_rest(app: Faena, ai: Upstream, view: BudgetView) -> None:
    """All that is left can be had, and not one millionth more."""
    if view.left.micro:
        async with ai.call(estimate={"unit": view.left.micro}):
            pass
    await (await app.runtime()).gate.flush()
    (view,) = await app.budget_views()
    assert view.spent == view.amount
    with pytest.raises(UpstreamUnavailable, match="budget"):
        async with ai.call(estimate={"unit": 1}):
            raise AssertionError("it was permitted")


async def test_processes_that_are_killed_lose_no_money_and_nobody_overspends(
    server: Server, tmp_path: Path
) -> None:
    plan = {"processes": 3, "killed": 1, "calls": 2_100, "amount": 350_000}
    seen = await compete(server.url, tmp_path, **plan)
    assert seen["refused"] > 0
    assert seen["looks"] > 1
