"""configure.lua"""

from __future__ import annotations

import pytest

from faena.engine.settings import UNSERVED, declaration
from faena.errors import ConfigError
from faena.limits import Limit
from faena.options import Backpressure, QueueOptions, Retain
from tests._support.rig import T0, Rig
from tests._support.transfer import Transfer

BOUNDED = Backpressure(soft=100, hard=200, tenant_soft=10, tenant_hard=20)


def written(**options: object) -> dict[str, str]:
    """The settings that stand in `conf` after a declaration."""
    settings = declaration(QueueOptions(**options))  # type: ignore[arg-type]
    return {name: value for name, value in settings.items() if value != ""}


async def test_a_declaration_writes_every_setting_that_has_a_value(rig: Rig) -> None:
    options = {
        "limits": [Limit("5/s"), Limit("100/min")],
        "max_running": 3,
        "backpressure": Backpressure(soft=1, hard=2),
    }
    await rig.declare(**options)
    assert await rig.dump() == {"conf": written(**options) | {"edited": ""}}
    assert (await rig.dump())["conf"]["limits"] == "5/1000000 100/60000000"


async def test_a_second_declaration_changes_nothing(rig: Rig) -> None:
    await rig.declare(max_running=3)
    await rig.remember()
    await rig.declare(max_running=3)
    assert await rig.is_untouched()


async def test_a_new_declaration_takes_the_place_of_the_old_one(rig: Rig) -> None:
    await rig.declare(max_running=3)
    await rig.declare(lease="1m")
    assert (await rig.dump())["conf"] == written(lease="1m") | {"edited": ""}


async def test_what_was_edited_at_run_time_survives_declarations(rig: Rig) -> None:
    await rig.declare(max_running=3)
    await rig.edit(max_running=9, limits="")
    await rig.declare(max_running=4, limits=[Limit("5/s")])
    conf = (await rig.dump())["conf"]
    assert (conf["max_running"], conf["edited"]) == ("9", "limits max_running")
    assert "limits" not in conf


def declare_unserved(rig: Rig) -> None:
    """As a program that may not have the handlers."""
    rig.engine.know("q", {**declaration(QueueOptions()), **UNSERVED})


async def test_whoever_claims_declares_what_a_program_without_handlers_could_not(rig: Rig) -> None:
    declare_unserved(rig)
    await rig.add("a")
    assert (await rig.dump())["conf"]["unserved"] == "1"
    named = {"caller": "worker", "lease": "call", "worker": "worker", "want": 1, "least_us": 0}
    assert await rig.engine.ask("exchange", "q", **named, plain=0, kept=0) == [b"UNCONFIGURED"]
    await rig.claim()
    assert (await rig.dump())["conf"] == written() | {"edited": ""}


async def test_a_program_without_handlers_declares_a_served_queue_as_it_was(rig: Rig) -> None:
    options = QueueOptions()
    options.hooks["dead", "send"] = "send.dead"
    options.costs["send"] = {"tokens": 3}
    rig.engine.know("q", declaration(options))
    await rig.engine.declare("q", serves=True)
    await rig.remember()
    declare_unserved(rig)
    await rig.engine.declare("q")
    assert await rig.is_untouched()


async def test_an_edit_answers_with_all_settings(rig: Rig) -> None:
    await rig.declare()
    settings = await rig.engine.configure("q", {"max_running": "2"})
    assert settings == (await rig.dump())["conf"]


async def test_a_reset_lets_code_decide_again(rig: Rig) -> None:
    await rig.declare(max_running=3)
    await rig.edit(max_running=9, hard=5)
    await rig.engine.reset("q", ["max_running"])
    conf = (await rig.dump())["conf"]
    assert (conf["max_running"], conf["hard"], conf["edited"]) == ("3", "5", "hard")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lease_us", ""),
        ("age_step_us", "soon"),
        ("max_deliveries", ""),
        ("retry_boost", ""),
        ("max_running", "many"),
        ("limits", "5"),
        ("limits", "5/s"),
        ("limits", "5/1000000 x"),
        ("limits", "0/1000000"),
    ],
)
async def test_a_setting_no_script_could_work_with_is_refused_and_nothing_written(
    rig: Rig, name: str, value: str
) -> None:
    await rig.declare()
    await rig.remember()
    said = name.removesuffix("_us")
    with pytest.raises(ConfigError, match=f"{said} must be") as caught:
        await rig.edit(**{"soft": 1, name: value})
    assert caught.value.field == said
    assert await rig.is_untouched()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"hard": 50}, "soft must be less than hard, got soft 100 and hard 50"),
        ({"soft": 200}, "soft must be less than hard, got soft 200 and hard 200"),
        ({"tenant_soft": 50}, "tenant_soft must be less than tenant_hard, got tenant_soft 50 and"),
        ({"tenant_hard": 5, "soft": 10}, "got tenant_soft 10 and tenant_hard 5; change both"),
        ({"soft": 9, "hard": 8}, "got soft 9 and hard 8"),
    ],
)
async def test_bounds_that_contradict_each_other_are_refused_and_nothing_written(
    rig: Rig, edit: dict[str, int], said: str
) -> None:
    await rig.declare(backpressure=BOUNDED)
    await rig.remember()
    with pytest.raises(ConfigError, match=said) as caught:
        await rig.edit(**edit)
    assert caught.value.field in edit
    assert await rig.is_untouched()


async def test_bounds_may_be_changed_together_or_removed(rig: Rig) -> None:
    await rig.declare(backpressure=BOUNDED)
    await rig.edit(soft=1000, hard=2000)
    await rig.edit(tenant_soft="", tenant_hard=5)
    await rig.edit(tenant_hard="", soft="")
    await rig.edit(hard=1, tenant_soft=1000)


async def test_what_code_says_goes_beside_an_older_edit(rig: Rig) -> None:
    """No program is kept from starting; another shard may be given the same settings."""
    await rig.declare(backpressure=Backpressure(soft=100, hard=1000))
    await rig.edit(soft=500)
    await rig.declare(backpressure=Backpressure(soft=100, hard=200))
    await rig.edit(soft=500, max_running=3)
    conf = (await rig.dump())["conf"]
    assert (conf["soft"], conf["hard"], conf["max_running"]) == ("500", "200", "3")


async def test_a_shard_that_was_retired_is_not_edited(rig: Rig, transfer: Transfer) -> None:
    await transfer.know_of_change(epoch=2)
    assert await transfer.moving.retire("q", 2)
    await rig.remember()
    await rig.edit(max_running=3)
    assert not await rig.engine.hold("q", "pause", None, "ops")
    assert await rig.is_untouched()


async def test_a_bound_on_bytes_is_counted_from_the_moment_it_is_set(rig: Rig) -> None:
    await rig.declare(retain=Retain(dead_bytes=100))
    assert (await rig.dump())["clock"] == {"dead_since": T0 + 1}
    rig.clock.go(1)
    await rig.edit(dead_bytes=200)
    assert (await rig.dump())["clock"] == {"dead_since": T0 + 1}
    await rig.edit(dead_bytes="")
    assert "clock" not in await rig.dump()


async def test_a_queue_nobody_declared_is_an_error_before_anything_is_sent(rig: Rig) -> None:
    with pytest.raises(ConfigError, match="'other' is not declared"):
        await rig.engine.declare("other")
