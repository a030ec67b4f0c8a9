"""Limits by cost and estimates, as they are declared and refused."""

from __future__ import annotations

from typing import Any

import pytest

from faena import Faena, Limit
from faena.engine.settings import declaration, read_settings
from faena.errors import ConfigError
from faena.limits import check_stack
from faena.options import EnqueueOptions, QueueOptions
from faena.options.costs import cost_fact
from faena.sharding.quota import check_divisible

TOKENS = Limit("90000/min", cost="tokens")
app = Faena("unit", "redis://127.0.0.1:1/0")
queue = app.queue("llm", limits=[Limit("60/min"), TOKENS], tenant_limits=[Limit("9/h", cost="usd")])


def test_a_limit_by_cost_is_another_limit_than_one_on_claims() -> None:
    assert (TOKENS.max, TOKENS.per_us, TOKENS.cost) == (90_000, 60_000_000, "tokens")
    assert (str(TOKENS), repr(TOKENS)) == (
        "90000/min of tokens",
        "Limit('90000/min', cost='tokens')",
    )
    assert Limit("90000/min") != TOKENS
    assert check_stack([TOKENS, Limit("60/min"), Limit("100/h", cost="usd")])
    with pytest.raises(ConfigError, match="both have the same window"):
        check_stack([TOKENS, Limit("5/min", cost="tokens")])


@pytest.mark.parametrize("unit", ["", "Tokens", "to kens", "a/b", "@a", "1st", "x" * 33, 7])
def test_a_unit_has_a_plain_name(unit: Any) -> None:
    with pytest.raises(ConfigError, match="cost must be a unit's name: 1 to 32 of a-z"):
        Limit("1/s", cost=unit)


def test_the_scripts_are_told_of_both_kinds_apart() -> None:
    told = declaration(queue.options)
    assert (told["limits"], told["costs"]) == ("60/60000000", "90000/60000000/tokens")
    assert (told["tenant_limits"], told["tenant_costs"]) == ("", "9/3600000000/usd")
    assert queue.options.is_laned
    found = read_settings({name: text for name, text in told.items() if text}, is_fair=True)
    assert (found.limits, found.tenant_limits) == (
        queue.options.limits,
        queue.options.tenant_limits,
    )


@pytest.mark.parametrize("cost", [7, [], {"tokens": 0}, {"tokens": 1.5}, {"tokens": True}, {1: 1}])
def test_an_estimate_is_a_whole_number_of_a_unit(cost: Any) -> None:
    with pytest.raises(ConfigError, match="cost"):
        EnqueueOptions(cost=cost)


def test_an_estimate_must_be_of_a_unit_that_is_limited_and_fit_into_the_limit() -> None:
    assert cost_fact("llm", queue.options, {"usd": 2, "tokens": 90_000}) == "tokens:90000,usd:2"
    with pytest.raises(ConfigError, match=r"queue llm limits, got 'token'; did you mean 'tokens'"):
        cost_fact("llm", queue.options, {"token": 1})
    with pytest.raises(ConfigError, match="must be at most 90000 tokens, because of"):
        cost_fact("llm", queue.options, {"tokens": 90_001})


async def test_what_could_never_start_is_refused_before_anything_is_sent() -> None:
    @queue.task(cost={"tokens": 500})
    async def ask(prompt: str) -> None: ...

    with pytest.raises(ConfigError, match="must be at most 9 usd"):
        await ask.enqueue("hello", cost={"usd": 10})
    with pytest.raises(ConfigError, match="must be at most 9 usd"):
        await ask.enqueue_many(["hello"], cost={"usd": 10})
    assert ask.lane_facts(None, None) == {"lane": "@", "cost": "tokens:500"}
    assert ask.lane_facts(None, None, {"tokens": 7, "usd": 1})["cost"] == "tokens:7,usd:1"
    with pytest.raises(ConfigError, match="must be at most 90000 tokens"):
        queue.task(cost={"tokens": 100_000}, name="large")(ask.handler.function)
    assert "large" not in queue.tasks


def test_what_cannot_be_meant_together_is_refused() -> None:
    with pytest.raises(ConfigError, match="learning must be off with a limit by cost"):
        QueueOptions(limits=[TOKENS], learning=True)
    with pytest.raises(ConfigError, match="shards must be 1 with the limit"):
        QueueOptions(limits=[TOKENS], shards=2)
    assert QueueOptions(tenant_limits=[TOKENS], shards=2).units == {"tokens"}
    with pytest.raises(ConfigError, match="shards must be 1"):
        check_divisible({"costs": "5/5/tokens"}, 2)


async def test_one_tenant_s_own_limits_are_on_claims() -> None:
    with pytest.raises(ConfigError, match="limits of one tenant must be on claims"):
        await queue.tenant("acme").configure(limits=[TOKENS])


@pytest.mark.parametrize("field", ["limits", "tenant_limits"])
async def test_no_edit_limits_a_cost_that_jobs_cannot_say(field: Any) -> None:
    with pytest.raises(ConfigError, match=f"{field} of queue llm must count a unit that") as caught:
        await queue.configure(**{field: [Limit("5/s"), Limit("9/h", cost="pages")]})
    assert caught.value.field == field
