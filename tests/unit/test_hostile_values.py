"""Values that no program means to give: each is refused by an error of our own, or is a plain one.

They come from outside all the same: a number out of JSON has as many digits as its sender likes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import Enum, IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faena import (
    Backpressure,
    DeadLetters,
    Durability,
    Faena,
    FaenaError,
    IdempotencyKey,
    Limit,
    RateLimited,
    Retain,
    Retry,
    Snooze,
    Unique,
    WebhookKey,
)
from faena.deadletter.filters import read_filter, read_rate
from faena.errors import ConfigError, nearest, shown
from faena.options import BatchOptions, EnqueueOptions, QueueOptions, TaskOptions
from faena.options.settings import changed, check_changeable
from faena.pool import Pool
from faena.scheduling.options import read_terms
from faena.states import State, state_of
from faena.telemetry.events import read_kinds, read_since
from faena.values.ids import as_label
from faena.values.names import check_label, check_name, check_reason, check_words
from faena.values.numbers import check_real, check_whole
from faena.worker.options import WorkerOptions


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Talkative(int):
    """An int whose text is another's."""

    def __str__(self) -> str:
        return "1 lane=@x\n"

    __repr__ = __str__


class Kind(int, Enum):
    A = 1


class Level(IntEnum):
    LOW = 7


class Word(str, Enum):  # noqa: UP042 - as many programs have it
    A = "org-1"


class Zoneless(tzinfo):
    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta(hours=23)

    def dst(self, _: datetime | None) -> None:
        return None


HOSTILE: dict[str, Any] = {
    "giant": 10**5000,
    "minus giant": -(10**5000),
    "no repr": Unshowable(),
    "int and more": Talkative(5),
    "list": [[]],
    "dict": {"a": []},
    "set": {1},
    "bytes": b"x",
    "surrogate": "\ud800",
    "huge text": "x" * 1_000_000,
    "not a number": float("nan"),
    "no end": float("inf"),
    "last instant": datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
    "zone of one's own": datetime(2030, 1, 1, tzinfo=Zoneless()),
}


def _fields(make: Callable[..., Any], *names: str) -> dict[str, Callable[[Any], Any]]:
    return {f"{make.__qualname__} {name}": partial(_give, make, {}, name) for name in names}


def _options(kind: type[Any], **needed: Any) -> dict[str, Callable[[Any], Any]]:
    names = [one.name for one in fields(kind) if one.init]
    return {f"{kind.__name__} {name}": partial(_give, kind, needed, name) for name in names}


def _give(make: Callable[..., Any], needed: dict[str, Any], name: str, value: Any) -> None:
    make(**{**needed, name: value})


def _term(name: str, value: Any) -> None:
    read_terms({name: value}, "UTC")


def _app() -> Faena:
    app = Faena("shop")
    app.queue("mail")
    return app


DOORS: dict[str, Callable[[Any], Any]] = {
    **_options(EnqueueOptions),
    **_options(QueueOptions),
    **_options(TaskOptions, name="send"),
    **_options(BatchOptions, name="send"),
    **_options(Backpressure, hard=10),
    **_options(Retain),
    **_options(DeadLetters),
    **_options(Pool, name="pool", queues=("mail",)),
    **_options(WorkerOptions),
    **_fields(Retry.exponential, "base", "factor", "cap", "attempts", "jitter", "give_up_on"),
    **_fields(Limit, "rate", "max", "per", "cost"),
    "Retry.steps": Retry.steps,
    "Retry.custom": Retry.custom,
    "Unique.of": Unique.of,
    "Durability.of": Durability.of,
    "Snooze": Snooze,
    "Snooze most": lambda value: Snooze("1s", most=value),
    "RateLimited": RateLimited,
    "RateLimited scope": lambda value: RateLimited(1, value),
    "IdempotencyKey": lambda value: IdempotencyKey(value, "a", "b", "c"),
    "IdempotencyKey stamp": lambda value: IdempotencyKey("a", "b", "c", "d", value),
    "WebhookKey": lambda value: WebhookKey("mp", value),
    "app": Faena,
    "app directory": lambda value: Faena("shop", directory=value),
    "app patience": lambda value: Faena("shop", patience=value),
    "queue": lambda value: Faena("shop").queue(value),
    "remote queue": lambda value: Faena("shop").remote_queue(value),
    "stub": lambda value: Faena("shop").remote_queue("mail").stub(value),
    "pool": lambda value: _app().pool(value, ["mail"]),
    "queues of a pool": lambda value: _app().pool("web", [value]),
    "flow": lambda value: Faena("shop").running_flow(value),
    "changed fair": lambda value: changed(QueueOptions(), {"fair": value}),
    "changed name": lambda value: check_changeable([value]),
    "state": lambda value: state_of(value, State),
    "since": read_since,
    "kinds": read_kinds,
    "filter status": lambda value: read_filter({"status": value}),
    "filter tenant": lambda value: read_filter({"tenant": value}),
    "filter error": lambda value: read_filter({"error": value}),
    "rate": read_rate,
    **{
        f"schedule {name}": partial(_term, name)
        for name in ("at", "every", "cron", "tz", "count", "missed", "overlap", "start", "priority")
    },
}


@pytest.mark.parametrize("door", DOORS)
def test_whatever_is_given_only_an_error_of_ours_comes_of_it(door: str) -> None:
    for value in HOSTILE.values():
        try:
            DOORS[door](value)
        except FaenaError as error:
            assert len(str(error)) < 2_000  # noqa: PT017 - that it raises is not asked


def test_what_is_shown_of_a_value_is_brief_and_never_fails() -> None:
    assert shown("mail") == "'mail'"
    assert shown(10**5000) == "<int that cannot be shown>"
    assert shown(Unshowable()) == "<Unshowable that cannot be shown>"
    assert len(shown("x" * 10**6)) < 300
    assert len(shown([0] * 10**6)) < 300
    assert nearest(10**5000, ["mail"]) == "valid: mail"


def test_every_message_shows_what_it_was_given_in_that_way() -> None:
    source = Path(__file__).parents[2] / "src" / "faena"
    unsafe = re.compile(r"got \{[^{}]*!r\}")
    texts_only = {"address.py", "keys.py", "lifeline.py"}  # they read the environment, and names
    found = [
        str(path)
        for path in source.rglob("*.py")
        if "cli" not in path.parts and path.name not in texts_only
        if unsafe.search(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize("check", [check_label, check_name, check_words, as_label])
def test_a_text_that_is_more_is_kept_as_the_text_alone(check: Callable[..., str]) -> None:
    assert type(check("tenant", Word.A)) is str
    assert f"{check('tenant', Word.A)}" == "org-1"
    assert type(check_reason(Word.A)) is str


def test_a_number_that_is_more_is_kept_as_the_number_alone() -> None:
    assert type(check_whole("size", Level.LOW, least=1, most=10)) is int
    assert EnqueueOptions(attempts=Talkative(5)).attempts == 5
    assert type(EnqueueOptions(attempts=Talkative(5)).attempts) is int
    assert type(QueueOptions(max_running=Talkative(5)).max_running) is int
    assert type(Backpressure(hard=Talkative(5)).hard) is int
    assert type(Retain(dead_count=Talkative(5)).dead_count) is int


def test_a_number_beyond_any_float_is_out_of_bounds() -> None:
    with pytest.raises(ConfigError, match="weight must be a number from 1 to 9"):
        check_real("weight", 10**5000, least=1, most=9)


def test_an_id_that_is_a_number_has_its_digits() -> None:
    assert as_label("id", 12) == "12"
    assert as_label("id", Level.LOW) == "7"
    assert as_label("id", Kind.A) == "1"
    assert as_label("id", Talkative(3)) == "3"
    assert as_label("id", -5) == "-5"
    assert EnqueueOptions(tenant=Talkative(3)).tenant == "3"


def test_an_id_that_is_a_number_is_no_longer_than_any_other() -> None:
    for value in (10**128, -(10**127), 10**5000, True):
        with pytest.raises(ConfigError, match="id must be 1 to 128 printable characters"):
            as_label("id", value)
    assert len(as_label("id", 10**127)) == 128


def test_a_finished_instant_of_utc_is_asked_for() -> None:
    assert read_since(datetime(2030, 1, 1, tzinfo=UTC)) == datetime(2030, 1, 1, tzinfo=UTC)
    with pytest.raises(ConfigError, match="since must be"):
        read_since(HOSTILE["last instant"])
