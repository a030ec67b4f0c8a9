"""Checks the permissions that scripts need, so that none stops halfway.

`enqueue`, `exchange` and `renew` check everything before their first write, except two things that
only the server knows: whether the user may run a command, and whether a key has the expected type.
Both are checked before a program's first write to a queue.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from faena.engine.keys import CATALOGUE, CHANNELS, Keys, channel
from faena.engine.script_library import load
from faena.engine.wire.wire import Wire
from faena.errors import StoreRejected

_OF_A_KEY: Final = (
    *("COPY", "DEL", "EXISTS", "EXPIRE", "GET", "HDEL", "HEXISTS", "HGET", "HGETALL", "HINCRBY"),
    *("HINCRBYFLOAT", "HKEYS", "HLEN", "HMGET", "HSCAN", "HSET", "HSETNX", "HSTRLEN", "LINDEX"),
    *("LPOP", "LRANGE", "LSET", "MGET", "PERSIST", "PEXPIRE", "PEXPIREAT", "PEXPIRETIME", "PTTL"),
    *("RENAME", "RPUSH", "SADD", "SCARD", "SET", "SMISMEMBER", "SREM", "TYPE", "UNLINK", "XADD"),
    *(
        "XDEL",
        "XLEN",
        "XRANGE",
        "XREVRANGE",
        "XTRIM",
        "ZADD",
        "ZCARD",
        "ZCOUNT",
        "ZINCRBY",
        "ZMSCORE",
    ),
    *("ZPOPMIN", "ZRANDMEMBER", "ZRANGE", "ZRANK", "ZREM", "ZREMRANGEBYSCORE", "ZSCORE"),
)
_LINES: Final = {
    "COPY": "COPY * *",
    "RENAME": "RENAME * *",
    "SET": "SET * x",
    "XINFO": "XINFO STREAM *",
    "ZUNIONSTORE": "ZUNIONSTORE * 1 *",
    "TIME": "TIME",
}
SCRIPTED: Final = (*_OF_A_KEY, "PUBLISH", "TIME", "XINFO", "ZUNIONSTORE")
"""Commands that scripts run."""

_BESIDE: Final = (
    *("BZPOPMIN * 1", "SMEMBERS *", "XREAD STREAMS * 0", "ZREVRANGE * 0 0"),
    *("WAIT 0 0", "WAITAOF 0 0 0"),
)
"""Commands sent without a script: to wait for work, events and durability, and to read."""


class Objection(NamedTuple):
    """What the server would refuse, and what to do about it."""

    what: str
    remedy: str


async def check_permitted(wire: Wire, namespace: str, queue: str, patience_s: float) -> None:
    """Raise StoreRejected, with what to grant or to fix, if a script might stop halfway."""
    if problem := await objection(wire, namespace, queue, patience_s=patience_s):
        raise StoreRejected(
            f"the broker at {wire.address} would refuse parts of calls: "
            f"{problem.what}: {problem.remedy}",
            op="declare",
        )


async def objection(
    wire: Wire, namespace: str, queue: str, *, patience_s: float, is_beside_too: bool = False
) -> Objection | None:
    """What the server would refuse; None if nothing."""
    prefix, user = Keys(namespace, queue).prefix, wire.address.username or "default"
    script, (number, lines) = load("permit"), asked(namespace, is_beside_too=is_beside_too)
    args = ["", *script.args.arranged("permit", lines, {"number": number})]
    try:
        denied, strange = await wire.run(script, [prefix], args, patience_s=patience_s)
    except StoreRejected as error:
        if "access a key" not in str(error):
            raise
        what = f"user {user} must be permitted all keys {namespace}:*"
        return Objection(what, _grant(user, namespace))
    if denied:
        verbs = dict.fromkeys(one.decode().lower() for one in denied)
        what = f"user {user} must be permitted to run {', '.join(verbs)} for {namespace}:*"
        return Objection(what, _grant(user, namespace, *verbs))
    return _strange(prefix, *strange[:2]) if strange else None


def _grant(user: str, namespace: str, *verbs: str) -> str:
    rules = "".join(f"+{verb} " for verb in verbs)
    return f"run ACL SETUSER {user} {rules}~{namespace}:* &{namespace}:*"


def _strange(prefix: str, name: bytes, found: bytes) -> Objection:
    types = {key.name: key.type for key in CATALOGUE}
    return Objection(
        f"key {prefix}{name.decode()} must be a {types[name.decode()]}, is a {found.decode()}",
        "another program wrote it; remove the key, or use another namespace for one of the two",
    )


def asked(namespace: str, *, is_beside_too: bool = False) -> tuple[int, list[str]]:
    """The arguments of `permit.lua`: how many commands, and their lines with keys and types."""
    told = [channel(namespace, name) for name, _ in CHANNELS]
    lines = [_LINES.get(verb, f"{verb} *") for verb in SCRIPTED if verb != "PUBLISH"]
    lines += [f"PUBLISH {name} x" for name in told]
    if is_beside_too:
        lines += [*_BESIDE, *(f"SUBSCRIBE {name}" for name in told)]
    types = [text for key in CATALOGUE if key.name[-1] != ":" for text in (key.name, key.type)]
    return len(lines), [*lines, *types]
