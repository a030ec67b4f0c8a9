"""What changes a queue as a whole: its settings, its shards, and what removes many jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from faena.options.backpressure import Backpressure
from faena.options.retain import Retain
from faena.options.settings import Settings, parse_setting
from faena.sharding.view import ShardsView
from faena.states import State
from faena.web.access.role import Permission
from faena.web.answer import Refusal
from faena.web.operation.operation import Asked, Done, Nothing, Operation
from faena.web.operation.queue import queue_of
from faena.web.reading.queue import SETTINGS

_AT_ONCE: Final = 10_000
"""The most jobs that one call removes: a call ends soon, and can be made again."""
_WAIT: Final = "2s"
"""How long a call waits for jobs to move; workers go on with it."""


class Changes(msgspec.Struct, forbid_unknown_fields=True):
    """Settings to be changed, named as in `app.queue()`."""

    settings: dict[str, Any]
    """Name → value, or the text that `faena configure` takes: {"max_running": 50, "limits":
    "10/s, 5000/min of tokens"}; null removes a bound."""


class Names(msgspec.Struct, forbid_unknown_fields=True):
    """Settings that are to be as code has them again."""

    names: str | list[str] = []
    """None: all of them, and the number of shards."""


class Shards(msgspec.Struct, forbid_unknown_fields=True):
    """How many shards a queue has."""

    shards: int


class Old(msgspec.Struct, forbid_unknown_fields=True):
    """Which finished jobs are removed."""

    age: str
    """Those that finished longer ago, such as 7d."""
    state: str = State.COMPLETED.value
    """completed, cancelled or dead."""


class Waiting(msgspec.Struct, forbid_unknown_fields=True):
    """Which waiting jobs are removed."""

    confirm: str
    """The name of the queue, again."""
    keep_delayed: bool = False


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    """That a queue is removed with everything in it."""

    confirm: str
    """The name of the queue, again."""
    force: bool = False
    """Even while jobs run."""


class Number(msgspec.Struct, frozen=True):
    """How many jobs were changed."""

    jobs: int
    is_all: bool
    """Whether no more are left."""


async def _configure(asked: Asked) -> Done:
    queue, given = queue_of(asked), asked.given.settings
    if not given:
        raise Refusal(422, "invalid", "settings must name at least one setting")
    changes: Any = {name: _value(name, value) for name, value in given.items()}
    before = (await queue.settings()).to_dict()
    after = (await queue.configure(by=asked.by, **changes)).to_dict()
    return Done(after, _some(before, given), _some(after, given))


def _value(name: str, value: Any) -> Any:
    """A value as JSON has it, as `configure` takes it."""
    if isinstance(value, str):
        return parse_setting(name, value)
    if name in {"limits", "tenant_limits", "key_limits"} and isinstance(value, list):
        return [parse_setting(name, str(one))[0] for one in value if _is_limit(one)]
    if name == "backpressure" and isinstance(value, dict):
        return Backpressure(**value)
    if name == "retain" and isinstance(value, dict):
        return Retain(**value)
    return value


def _is_limit(one: Any) -> bool:
    if not isinstance(one, str) or not one.strip() or "," in one:
        raise Refusal(422, "invalid", "a limit must be a text such as 10/s")
    return True


def _some(settings: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings.get(name) for name in names}


async def _reset(asked: Asked) -> Done:
    queue, names = queue_of(asked), asked.given.names
    chosen = [names] if isinstance(names, str) else names
    before = (await queue.settings()).to_dict()
    after = (await queue.reset(*chosen, by=asked.by)).to_dict()
    changed = {name: after[name] for name in after if after[name] != before[name]}
    return Done(after, _some(before, changed), changed)


async def _reshard(asked: Asked) -> Done:
    queue = queue_of(asked)
    before = (await queue.shards()).shards
    view = await queue.reshard(asked.given.shards, by=asked.by, wait=_WAIT)
    return Done(view.to_dict(), before, view.shards)


async def _clean(asked: Asked) -> Done:
    queue, given = queue_of(asked), asked.given
    done = await queue.clean(given.state, age=given.age, most=_AT_ONCE, by=asked.by)
    return Done(Number(done, done < _AT_ONCE), None, {"removed": done})


async def _drain(asked: Asked) -> Done:
    queue = _confirmed(asked)
    done = await queue.drain(is_delayed_too=not asked.given.keep_delayed, by=asked.by)
    return Done(Number(done, is_all=True), None, {"removed": done})


async def _promote(asked: Asked) -> Done:
    done = await queue_of(asked).promote_all(by=asked.by)
    return Done(Number(done, is_all=True), None, {"promoted": done})


async def _obliterate(asked: Asked) -> Done:
    queue = _confirmed(asked)
    before = dict((await queue.overview()).counts)
    await queue.obliterate(force=asked.given.force, by=asked.by)
    return Done({"removed": queue.name}, before, "gone")


def _confirmed(asked: Asked) -> Any:
    queue = queue_of(asked)
    if asked.given.confirm != queue.name:
        raise Refusal(422, "unconfirmed", f"confirm must be the name of the queue, {queue.name}")
    return queue


def _operation(
    name: str,
    do: Any,
    arguments: Any,
    text: str,
    *,
    end: str = "",
    needs: Permission = Permission.ADMINISTER,
    **more: Any,
) -> Operation:
    return Operation(
        name=f"queues.{name}",
        path=f"/queues/{{queue}}/{end or name}",
        text=text,
        arguments=arguments,
        do=do,
        needs=needs,
        **more,
    )


OPERATIONS: Final = (
    _operation(
        "configure",
        _configure,
        Changes,
        "Change settings of a queue while it runs, until they are reset.",
        end="settings",
        guards=SETTINGS,
        answers=Settings,
    ),
    _operation(
        "reset",
        _reset,
        Names,
        "Return settings of a queue, or all, to the values in code.",
        end="settings/reset",
        guards=SETTINGS,
        answers=Settings,
    ),
    _operation(
        "reshard",
        _reshard,
        Shards,
        "Change the number of shards of a queue while it runs.",
        end="shards",
        answers=ShardsView,
    ),
    _operation(
        "clean",
        _clean,
        Old,
        f"Remove finished jobs older than an age, up to {_AT_ONCE:,} in a call.",
        answers=Number,
    ),
    _operation("drain", _drain, Waiting, "Remove all waiting jobs of a queue.", answers=Number),
    _operation(
        "promote",
        _promote,
        Nothing,
        "Make all jobs that are delayed now ready.",
        answers=Number,
        needs=Permission.OPERATE,
    ),
    _operation(
        "obliterate",
        _obliterate,
        Whole,
        "Remove a queue with everything in it.",
        needs=Permission.OWN,
    ),
)
