"""What a job of a flow or the callback of a group is given by the jobs before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from faena.codec import codec_for
from faena.errors import ConfigError, PayloadError, shown, unknown_name
from faena.job import Input
from faena.options.fields import check_is
from faena.values.numbers import check_whole

Parents: TypeAlias = Mapping[str, Any] | None
"""What each node returned, by name; an `Input` for one that did not complete."""

Counts: TypeAlias = Mapping[str, int] | None
"""How many members ended in each way; `total` is their sum by default."""

_ENDINGS: Final = ("completed", "dead", "cancelled")
_MOST: Final = 1_000_000_000


def parents_of(given: Parents) -> dict[str, Input]:
    """As the job finds them in `job.parents`."""
    check_is("parents", given if given is not None else {}, Mapping)
    return {name: _input(name, value) for name, value in (given or {}).items()}


def _input(name: str, value: Any) -> Input:
    if isinstance(value, Input):
        return value
    try:
        return Input("completed", msgspec.Raw(codec_for(type(value)).encode(value)))
    except (ConfigError, PayloadError) as error:
        raise ConfigError(
            f"parents[{name!r}] must be something that a handler can return, got {shown(value)}: "
            f"{error}",
            field="parents",
            value=value,
        ) from None


def counts_of(given: Counts) -> dict[str, int]:
    """As the callback finds them in `job.group`."""
    if given is None:
        return {}
    check_is("group", given, Mapping)
    for name, count in given.items():
        if name not in {"total", *_ENDINGS}:
            raise unknown_name("group count", name, ("total", *_ENDINGS), field="group")
        check_whole(f"group count {name}", count, least=0, most=_MOST)
    counts = {name: given.get(name, 0) for name in _ENDINGS}
    ended = sum(counts.values())
    if given.get("total", ended) != ended:
        raise ConfigError(
            f"group count total must be the sum of the others, which is {ended}, "
            f"got {given['total']}",
            field="group",
            value=given,
        )
    return {"total": ended, **counts}
