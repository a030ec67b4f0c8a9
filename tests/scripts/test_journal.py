"""G18, without luck: a call that fails after its last write is taken back as a whole."""

from __future__ import annotations

import pytest
import redis

from faena.engine import script_library
from tests._support.restored_queue import RestoredQueue
from tests._support.valid_calls import SHAPES

GUARD = "return lib.guarded(all)"
GUARDED = [name for name in SHAPES if script_library.load(name).source.endswith(GUARD)]


def test_every_script_that_writes_is_guarded_or_says_that_it_is_sure() -> None:
    assert {*SHAPES} - {*GUARDED} == {"enqueue", "exchange", "history_done", "renew"}


@pytest.mark.parametrize("name", GUARDED)
def test_a_call_that_fails_when_all_is_written_leaves_nothing_behind(
    restored: RestoredQueue, name: str
) -> None:
    body = script_library.load(name).source.removesuffix(GUARD)
    failing = f"{body}return lib.guarded(function() all() error('planted') end)"
    for args in SHAPES[name]:
        restored.reset()
        before = restored.read()
        with pytest.raises(redis.ResponseError, match="planted"):
            restored.client.eval(failing, 1, restored.key.prefix, *args)
        assert restored.read() == before


BEFORE = [
    *("SET text old", "SET brief old PX 90000000000", "HSET hash a 1 b 2", "ZADD zset 1 a 2 b 3 c"),
    *("SADD set a b", "RPUSH list a b", "XADD stream 5-1 is old", "XADD stream 5-2 is old"),
]
WRITES = [
    *("SET text new", "SET brief new", "SET brief new PX 5000", "SET fresh new", "DEL text hash"),
    *("HSET hash a 9 c 9", "HSETNX hash c 9", "HINCRBY hash a 5", "HINCRBYFLOAT hash b 0.5"),
    *("HDEL hash a c", "HDEL hash a b", "UNLINK zset fresh", "SADD set c", "SREM set a b"),
    *("ZADD zset 9 a 9 d", "ZADD zset XX CH 9 a", "ZREM zset a d", "ZREM zset a b c"),
    *("ZINCRBY zset 4 a", "ZPOPMIN zset", "ZPOPMIN zset 2", "ZPOPMIN zset 7"),
    *("ZREMRANGEBYSCORE zset -inf 2", "ZUNIONSTORE zset 1 zset WEIGHTS 0", "RPUSH list c"),
    *("XADD stream * is new", "XADD fresh * is new", "XTRIM stream MINID 5-2"),
    *("EXPIRE text 5", "PEXPIRE brief 5000", "PERSIST brief"),
]


@pytest.mark.parametrize("again", ["", "DEL text brief hash zset set list stream"])
@pytest.mark.parametrize("write", WRITES)
def test_whatever_was_written_is_put_back(restored: RestoredQueue, write: str, again: str) -> None:
    restored.client.flushall()
    for command in BEFORE:
        restored.client.execute_command(*command.split())
    before = restored.read()
    calls = "".join(_lua(command) for command in (write, again) if command)
    body = f"#!lua\n{script_library.part_source('journal')}\ncall = noted\n"
    with pytest.raises(redis.ResponseError, match="planted"):
        restored.client.eval(f"{body}return guarded(function() {calls} error('planted') end)", 0)
    assert restored.read() == before


def _lua(command: str) -> str:
    return f"call({', '.join(repr(word) for word in command.split())})\n"


LAST = "write_last('SET', 'text', 'new') call('SET', 'seen', call('GET', 'text'))"


def test_what_is_written_last_is_read_as_it_was_until_then(restored: RestoredQueue) -> None:
    restored.client.flushall()
    restored.client.set("text", "old")
    body = f"#!lua\n{script_library.part_source('journal')}\ncall = noted\n"
    restored.client.eval(f"{body}return guarded(function() {LAST} end)", 0)
    assert restored.client.mget("text", "seen") == [b"new", b"old"]


def test_what_is_written_last_is_not_written_if_something_fails(restored: RestoredQueue) -> None:
    restored.client.flushall()
    restored.client.set("text", "old")
    body = f"#!lua\n{script_library.part_source('journal')}\ncall = noted\n"
    with pytest.raises(redis.ResponseError, match="planted"):
        restored.client.eval(f"{body}return guarded(function() {LAST} error('planted') end)", 0)
    assert restored.client.mget("text", "seen") == [b"old", None]
