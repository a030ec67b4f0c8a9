"""Settings that change at run time: the words of the options, checked as those are."""

from __future__ import annotations

from typing import Any

import pytest

from faena.engine.settings import WRITTEN, declaration, read_settings, written
from faena.errors import ConfigError
from faena.limits import Limit
from faena.options import Backpressure, QueueOptions, Retain
from faena.options.settings import CHANGEABLE, changed, check_changeable, parse_setting

PLAIN = QueueOptions()
FAIR = QueueOptions(fair=True)

VALUES: dict[str, Any] = {
    "limits": (Limit("10/s"), Limit("100/min")),
    "tenant_limits": (Limit("5/30s"),),
    "key_limits": (Limit("1/s"),),
    "learning": True,
    "max_running": 7,
    "tenant_max_running": 3,
    "fair": "time",
    "on_failure": "pass",
    "backpressure": Backpressure(soft=1, hard=9, tenant_soft=0, tenant_hard=4, max_delay="2s"),
    "retain": Retain(completed=None, completed_count=5, dead="1h", cancelled="1d", dead_bytes=100),
    "lease": "1m",
    "max_deliveries": 9,
    "age_step": "1h30m",
    "retry_boost": 0,
    "events_kept": 9000,
}


def in_force(options: QueueOptions, edited: str = "") -> Any:
    conf = {name: text for name, text in declaration(options).items() if text != ""}
    return read_settings(conf | {"edited": edited}, is_fair=options.is_fair)


@pytest.mark.parametrize("name", CHANGEABLE)
def test_what_is_changed_is_read_back_as_it_was_said(name: str) -> None:
    options = changed(FAIR, {name: VALUES[name]})
    assert written(options, [name]).keys() == set(WRITTEN[name])
    settings = in_force(options, " ".join(WRITTEN[name]))
    assert getattr(settings, name) == VALUES[name]
    assert settings.edited == (name,)


def test_every_option_is_changeable_or_says_why_not() -> None:
    for name in QueueOptions.__dataclass_fields__:
        if name in CHANGEABLE or not QueueOptions.__dataclass_fields__[name].init:
            continue
        with pytest.raises(ConfigError, match=f"{name} cannot be changed while the queue runs"):
            check_changeable([name])
    assert set(WRITTEN) == set(CHANGEABLE) == set(VALUES)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"limit": 3}, "setting must be a known name, got 'limit'; did you mean 'limits'"),
        ({"soft": 3}, "valid: age_step, backpressure, events_kept, fair, "),
        ({"shards": 3}, r"shards cannot be changed .*: use queue.reshard\(\)"),
        ({"limits": [Limit("10/s"), Limit("9/min")]}, "limits must not contradict each other"),
        ({"limits": "10/s"}, "limits must be a list of limits"),
        ({"max_running": 0}, "max_running must be"),
        ({"max_running": "7"}, "max_running must be"),
        ({"lease": 30}, "lease must be a timedelta, or a string such as"),
        ({"lease": "2h"}, "lease must be a duration from 100ms to 1h"),
        ({"retain": None}, "retain must be a Retain, got None"),
        ({"backpressure": {"soft": 1}}, "backpressure must be a Backpressure"),
        ({"learning": 1}, "learning must be a bool, got 1"),
        ({"events_kept": -1}, "events_kept must be"),
        ({"fair": False}, "fair must be 'jobs' or 'time' while the queue runs, got False"),
        ({"fair": "turns"}, "fair must be True, False, None, 'jobs' or 'time', got 'turns'"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        changed(PLAIN, changes)


def test_none_removes_a_bound() -> None:
    options = QueueOptions(limits=[Limit("1/s")], max_running=3, backpressure=Backpressure(hard=9))
    settings = in_force(
        changed(options, {"limits": None, "max_running": None, "backpressure": None})
    )
    assert (settings.limits, settings.max_running, settings.backpressure) == ((), None, None)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("limits", "10/s, 100/min", [Limit("10/s"), Limit("100/min")]),
        ("max_running", "1_000", 1000),
        ("max_running", "none", None),
        ("lease", "60s", "60s"),
        ("learning", "yes", True),
        ("fair", "time", "time"),
        ("backpressure", "soft=10 hard=20,max_delay=2s", VALUES["backpressure"].__class__(
            soft=10, hard=20, max_delay="2s")),
        ("retain", "completed=none dead_count=5", Retain(completed=None, dead_count=5)),
    ],
)  # fmt: skip
def test_texts_are_read(name: str, text: str, value: Any) -> None:
    assert parse_setting(name, text) == value
    if name != "max_running" or value is not None:
        changed(FAIR, {name: parse_setting(name, text)})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("limit", "1/s", "did you mean 'limits'"),
        ("backpressure", "sort=1", "did you mean 'soft'"),
        ("retain", "completed_count=many", "retain completed_count must be"),
        ("limits", "fast", "limit must be a count per window"),
        ("order", "key", "order cannot be changed"),
        ("learning", "1", "learning must be yes or no .*, got '1'"),
        ("lease", "5", "lease must be a duration such as 90s, 5m or 1h30m, got '5'"),
        ("age_step", "soon", "age_step must be a duration such as 90s"),
    ],
)
def test_texts_that_mean_nothing_are_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_setting(name, text)


def test_what_earlier_versions_could_edit_is_readable() -> None:
    conf = {name: text for name, text in declaration(PLAIN).items() if text != ""}
    conf = {name: text for name, text in conf.items() if not name.startswith("dead_")}
    settings = read_settings(conf | {"soft": "500", "hard": "200"}, is_fair=False)
    assert settings.backpressure is not None
    assert (settings.backpressure.soft, settings.backpressure.hard) == (199, 200)
    assert settings.retain.dead_count == 10**12


def test_limits_are_read_in_the_very_text_that_shows_them() -> None:
    stack = [Limit("10/s"), Limit("5000/min", cost="tokens"), Limit("2/30s", cost="images")]
    for text in (", ".join(map(str, stack)), " ".join(map(str, stack)), "10/s,5000/min of tokens"):
        assert parse_setting("limits", text) == stack[: text.count("/")]
    for bad in ("5000/min of", "of tokens", "5000/min of Tokens", "5000/min tokens"):
        with pytest.raises(ConfigError, match=r"limit must be|cost must be a unit"):
            parse_setting("limits", bad)
