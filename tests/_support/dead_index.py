"""What must hold between dead jobs and the dead-letter desk in every dump of a queue."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

STATUSES = {"pending", "retried", "discarded", "resolved"}


def index_keys_of(record: Mapping[str, Any]) -> set[str]:
    """Where a record must be found."""
    words = {f"status:{record['s']}", f"task:{record['t']}", f"print:{record['f']}"}
    words |= {f"error:{error}" for error in (record["e"], record["c"]) if error}
    return words | ({f"tenant:{record['o']}"} if record["o"] else set())


def wrong(keys: Mapping[str, Any]) -> Iterator[str]:
    """Every way in which desk and dead jobs disagree."""
    dead, desk = dict(keys.get("dead", [])), keys.get("desk", {})
    if set(dead) != set(desk):
        yield f"{sorted(dead)} are dead, the desk has {sorted(desk)}"
        return
    expected: dict[str, dict[str, float]] = {}
    for job, record in desk.items():
        for name in index_keys_of(record):
            expected.setdefault(f"desk:{name}", {})[job] = dead[job]
        if record["s"] not in STATUSES or (record["s"] == "pending") == ("r" in record):
            yield f"{job} has the record {record}"
        if (record["s"] == "retried") != ("to" in record):
            yield f"{job} is {record['s']}, made into {record.get('to')}"
    found = {name: dict(keys[name]) for name in keys if name.startswith("desk:")}
    if found != expected:
        yield f"the sets of the desk must be {expected}, are {found}"
    yield from _groups(keys, desk)
    yield from _lines(keys, desk)


def _own(spec: bytes) -> bytes:
    """As its producer wrote it: a job without a tenant may have joined the lane of such."""
    return re.sub(rb"^(\d{3}) lane=@(?=[ \n])", rb"\1", spec)


def _lines(keys: Mapping[str, Any], desk: Mapping[str, Any]) -> Iterator[str]:
    """A dead job and what was made of it both say so.

    Others may name it too: an id dies more than once, when it is run again or used anew.
    """
    specs, marks = keys.get("specs", {}), keys.get("marks", {})
    for job, record in desk.items():
        new = record.get("to")
        if new in specs and (marks[new].get("b"), _own(specs[new])) != (
            job,
            _own(specs[job]),
        ):
            yield f"{new} must be made of {job}, and is made of {marks[new].get('b')}"


def _groups(keys: Mapping[str, Any], desk: Mapping[str, Any]) -> Iterator[str]:
    pending = Counter(one["f"] for one in desk.values() if one["s"] == "pending")
    groups = {one["f"]: float(pending[one["f"]]) for one in desk.values()}
    if dict(keys.get("desk_groups", [])) != groups:
        yield f"groups must be {groups}, are {keys.get('desk_groups')}"
    if set(keys.get("desk_samples", {})) != set(groups):
        yield f"samples must be of {sorted(groups)}, are {keys.get('desk_samples')}"
    for job, _ in keys.get("desk_due", []):
        if desk.get(job, {}).get("s") != "pending":
            yield f"{job} is due and not pending"
