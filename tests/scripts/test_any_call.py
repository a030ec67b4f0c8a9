"""G18: a script that fails has changed nothing, whatever it was given and whatever it finds stored.

Every script is called with arguments that were valid before they were spoilt, on a queue that has
something of everything and was spoilt as well. FAENA_SEARCH=full runs many more.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from faena.engine import script_library
from tests._support.restored_queue import RestoredQueue
from tests._support.search import searching
from tests._support.valid_calls import SHAPES

bounded = searching(8)
many = searching(80, full=20_000)

FIELDS = [
    *"alipcumnobxdwtszefrkvqy",
    *("to", "limits", "max_running", "weight", "size", "held_until", "reason", "ends_at", "state"),
    *("filter", "score", "last", "max", "per_us", "due_at", "canary", "first", "failures", "died"),
    *("upstreams", "when_open", "check", "message", "critical", "fallback", "until_at", "ramp_us"),
    *("owner", "lease_until", "plan", "progress"),
]
WRITERS = [
    name
    for name in script_library.names()
    if "no-writes" not in script_library.load(name).source[:40]
]
ELSEWHERE = {
    *("alert", "dismiss", "flow", "group", "idem", "note", "relayed", "receive", "redrives"),
    *(
        "renew",
        "schedule",
        "spend",
        "admit",
        "declare_upstreams",
        "fallback",
        "panic",
        "database_event",
        "history_done",
    ),
    *("cached_read", "sweep_breakers", "forget_upstream", "forget_feature"),
    *("change_account", "count_try", "end_record", "keep_view", "bulk"),
    *("begin_alerts", "evaluate_alerts", "silence"),
    *("declare_features", "features", "set_feature", "switch_level", "begin_check", "end_check"),
}
"""Those that write, and have nothing to do with jobs that wait."""
NUMBERS = ["", "0", "1", "-1", "3", "nan", "inf", "-inf", "1e400", "9" * 30, "0x10", "1.5", "1e18"]
TEXTS = ["x", "\0", "a b", "a:b:c:", "@a", "running", "dead", "leader", "q", "\xff\xfe", "%s", "{}"]
scalars = st.one_of(
    st.sampled_from([None, True, 0, 1, -1, 2**63, 1.5, float("nan"), float("inf"), "", "x", "5"]),
    st.sampled_from(TEXTS),
)
packed = st.one_of(
    st.dictionaries(st.sampled_from(FIELDS), scalars, max_size=6),
    st.lists(scalars, max_size=8),
    st.lists(st.lists(scalars, max_size=11), max_size=2),
    scalars,
).map(msgspec.msgpack.encode)
values = st.one_of(
    st.sampled_from([text.encode("latin-1") for text in NUMBERS + TEXTS]),
    packed,
    st.binary(max_size=40),
    st.sampled_from([b"\xdf\xff\xff", b"\x81\xa1w", b"1 x 2", b"5 ", b"1 \x90", b"waiting x 0"]),
    st.sampled_from(
        [b"010 lane=@a chain=c delay=x unique=u mode=y by=z\n{}", b"010", b"\n", b"x" * 300]
    ),
)
spoilings = st.lists(
    st.tuples(st.sampled_from(["set", "drop", "add", "twice", "cut"]), st.integers(0, 30), values),
    max_size=3,
)
damages = st.lists(
    st.tuples(
        st.sampled_from(["set", "set", "drop", "new", "gone"]),
        st.integers(0),
        st.integers(0),
        values,
    ),
    max_size=4,
)
wrong_types = st.lists(
    st.tuples(st.integers(0), st.sampled_from(["string", "hash", "zset"])), max_size=2
)


def test_every_script_has_a_shape_that_is_valid(restored: RestoredQueue) -> None:
    assert sorted(SHAPES) == WRITERS
    for name, shapes in SHAPES.items():
        for args in shapes:
            restored.reset()
            restored.call(name, args)


def test_every_shape_is_valid_without_the_library_too(restored: RestoredQueue) -> None:
    for name, shapes in SHAPES.items():
        restored.reset()
        restored.call(name, shapes[0], alone=True)


@pytest.mark.parametrize("alone", [False, True], ids=["of the library", "alone"])
def test_whatever_has_to_do_with_waiting_jobs_begins_with_what_has_arrived(
    restored: RestoredQueue, *, alone: bool
) -> None:
    for name in WRITERS:
        restored.reset()
        restored.call(name, SHAPES[name][0], alone=alone)
        has_taken_in = restored.client.xlen(restored.key("arrivals")) == 0
        assert has_taken_in == (name not in ELSEWHERE), name


@pytest.mark.parametrize("name", WRITERS)
@given(which=st.integers(0), spoilt=spoilings, damaged=damages, retyped=wrong_types)
@bounded
def test_a_call_that_fails_changes_nothing(
    restored: RestoredQueue,
    name: str,
    which: int,
    spoilt: list[Any],
    damaged: list[Any],
    retyped: list[Any],
) -> None:
    restored.reset()
    shapes = SHAPES[name]
    args = spoil(list(shapes[which % len(shapes)]), spoilt)
    for damage in damaged:
        harm(restored, *damage)
    if name in SURE:
        # what it takes in first stays, whatever it does then
        restored.call("arrive", SHAPES["arrive"][0])
    for key, kind in retyped if name not in SURE else []:
        retype(restored, key, kind)
    fails_cleanly(restored, name, args)


@pytest.mark.parametrize("name", ["enqueue", "exchange", "renew"])
@given(which=st.integers(0), damaged=damages)
@many
def test_what_is_stored_keeps_no_valid_call_from_its_answer(
    restored: RestoredQueue, name: str, which: int, damaged: list[Any]
) -> None:
    restored.reset()
    for damage in damaged:
        harm(restored, *damage)
    restored.call(name, SHAPES[name][which % len(SHAPES[name])])


def fails_cleanly(restored: RestoredQueue, name: str, args: list[Any]) -> None:
    before = restored.read()
    failure = failure_of(restored, name, args)
    if failure:
        assert "Function not found" not in failure
        assert restored.read() == before, f"{name} has failed after it had written: {failure}"


def failure_of(restored: RestoredQueue, name: str, args: list[Any]) -> str:
    try:
        restored.call(name, args)
    except redis.ResponseError as error:
        return str(error)
    return ""


def spoil(args: list[Any], spoilt: list[Any]) -> list[Any]:
    """Arguments that were valid."""
    for how, where, value in spoilt:
        at = where % (len(args) or 1)
        if how == "set" and args:
            args[at] = value
        elif how == "drop" and args:
            del args[at]
        elif how == "add":
            args.insert(at, value)
        elif how == "twice":
            args += args[at:]
        elif how == "cut":
            del args[at:]
    return args


def harm(restored: RestoredQueue, how: str, which: int, where: int, value: bytes) -> None:
    """Spoil one value of a key, which keeps its type."""
    name, kind, _, content = restored.contents[which % len(restored.contents)]
    part = content[where % len(content)][0] if kind != b"string" and content else b"x"
    client = restored.client
    known = value if how == "new" else part
    if how == "gone":
        client.delete(name)
    elif how == "drop":
        drop(restored, name, kind, part)
    elif kind == b"string":
        client.set(name, value, keepttl=True)
    elif kind == b"hash":
        client.hset(name, known, value)
    elif kind == b"zset":
        client.zadd(name, {known: SCORES[where % len(SCORES)]})
    elif kind == b"set":
        client.sadd(name, value)
    elif kind == b"list":
        client.lset(name, where % len(content), value) if client.exists(name) else None
    else:
        client.xadd(name, {"is": value})


SCORES = [float("inf"), float("-inf"), 0.0, -1.0, 1e300, 5.5, 1.7e15]
SURE = {"enqueue", "exchange", "renew"}
"""They judge what is stored; a key of another type, which only another program makes, they may meet
after their first write. Whoever asks for such an exchange then settles one job at a time."""


def drop(restored: RestoredQueue, name: bytes, kind: bytes, part: bytes) -> None:
    client = restored.client
    if kind == b"hash":
        client.hdel(name, part)  # pyright: ignore[reportArgumentType] - bytes are keys too
    elif kind == b"zset":
        client.zrem(name, part)
    else:
        client.delete(name)


def retype(restored: RestoredQueue, which: int, kind: str) -> None:
    name = restored.contents[which % len(restored.contents)][0]
    client = restored.client
    client.delete(name)
    if kind == "string":
        client.set(name, "x")
    elif kind == "hash":
        client.hset(name, "x", "y")
    else:
        client.zadd(name, {"x": 1})
