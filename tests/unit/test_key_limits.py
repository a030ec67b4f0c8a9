"""Limits of keys, as they are declared, written and refused."""

from __future__ import annotations

from typing import Any

import pytest

from faena import Faena, Limit
from faena.engine.settings import PLACING, declaration, placing_of
from faena.errors import ConfigError
from faena.options import QueueOptions
from faena.sharding.quota import check_divisible, check_stays
from faena.tenancy.lanes import lane_facts

ONE = [Limit("1/s")]
KEYED = QueueOptions(key_limits=ONE)


def test_a_job_says_its_key_where_keys_have_limits() -> None:
    assert lane_facts("q", KEYED, "acme", "o7") == {"lane": "@acme", "key": "k/4/acme/o7"}
    assert lane_facts("q", KEYED, None, "o7") == {"lane": "@", "key": "k/0//o7"}
    assert lane_facts("q", KEYED, "acme", None) == {"lane": "@acme"}
    assert lane_facts("q", QueueOptions(), "acme", "o7") == {"lane": "@acme"}


def test_in_the_order_of_keys_the_key_is_the_chain() -> None:
    facts = lane_facts("q", QueueOptions(order="key", key_limits=ONE), "acme", "o7")
    assert facts == {"lane": "@acme", "chain": "k/4/acme/o7", "key": "k/4/acme/o7"}


def test_a_program_that_only_produces_learns_that_jobs_say_their_keys() -> None:
    told = declaration(KEYED) | {"key_limits": ""}  # as it is edited to none
    fields = [told[name].encode() or None for name in PLACING]
    facts = lane_facts("q", placing_of("q", fields), "acme", "o7")
    assert facts == {"lane": "@acme", "key": "k/4/acme/o7"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key_limits": "1/s"}, "key_limits must be a list of limits"),
        ({"key_limits": [1]}, "key_limits must be a list of limits"),
        ({"key_limits": [Limit("1/s"), Limit("2/1s")]}, "key_limits must not contradict"),
        ({"key_limits": [Limit("9/s", cost="tokens")]}, "key_limits must count claims, got 9/s of"),
        ({"key_limits": ONE, "order": "tenant"}, "key_limits must not be given with order"),
        ({"key_limits": ONE, "order": "queue"}, "key_limits must not be given with order"),
        ({"key_limits": ONE, "fair": False}, "fair must not be off: key_limits needs lanes"),
        ({"key_limits": ONE, "shards": 2}, "shards must be 1 with key_limits, got 2"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        QueueOptions(**options)


async def test_a_queue_whose_jobs_do_not_say_their_keys_cannot_be_given_limits_of_keys() -> None:
    app = Faena("unit", "redis://127.0.0.1:1/0")
    with pytest.raises(ConfigError, match="key_limits of queue plain must be declared in code"):
        await app.queue("plain").configure(key_limits=ONE)


def test_tenants_stay_where_they_are_while_keys_have_limits() -> None:
    settings = {name: text for name, text in declaration(KEYED).items() if text}
    with pytest.raises(ConfigError, match="shards must be 1 with key_limits, got 2"):
        check_divisible(settings, 2)
    with pytest.raises(ConfigError, match="tenants of queue q cannot move"):
        check_stays(settings, "q")
    check_divisible(settings, 1)
    check_stays({}, "q")
