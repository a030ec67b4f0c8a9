"""The ways of jobs from state to state, as the headers of the scripts tell them.

A header says for each verb from which states to which it takes jobs, and when:
`-- states   verb  from | from -> to | to : when`. `docs/design/states.md` is written out of them by
`./dev reference`, and `StateWatch` compares them with what the scripts do.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from faena.engine import Wire
from faena.states import State
from tests._support.lua import Lua

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "design" / "states.md"
SCRIPTS: Final = ROOT / "src" / "faena" / "engine" / "lua"
NONE: Final = "none"
_HEADER = re.compile(r"^-- states   (.+\n(?:--          .+\n)*)", re.MULTILINE)
_LINE = re.compile(r"(\w+) +([\w |]+?) -> ([\w |]+?) : (.+)")


class Transition(NamedTuple):
    """One way that a script may take a job; `none` is no job at all."""

    script: str
    verb: str
    source: str
    target: str
    when: str


@cache
def every_transition() -> tuple[Transition, ...]:
    """Those of all scripts, in the order of their files."""
    paths = sorted(path for path in SCRIPTS.rglob("*.lua") if "lib" not in path.parts)
    return tuple(
        transition
        for path in paths
        for transition in transitions_in(path.stem, path.read_text("utf-8"))
    )


def transitions_in(script: str, text: str) -> Iterator[Transition]:
    """What a header says; raises ValueError where it says nothing that can be read."""
    header = _HEADER.search(text)
    if header is None:
        raise ValueError(f"{script}.lua: its header has no line `-- states`")
    lines = [line.removeprefix("--").strip() for line in header.group(1).splitlines()]
    for line in lines if lines != [NONE] else []:
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"{script}.lua: `{line}` must be `verb  from -> to : when`")
        verb, sources, targets, when = found.groups()
        for source in _states(script, sources):
            yield from (
                Transition(script, verb, source, to, when) for to in _states(script, targets)
            )


def _states(script: str, text: str) -> list[str]:
    words = [word.strip() for word in text.split("|")]
    if unknown := [word for word in words if word not in {*State, NONE}]:
        raise ValueError(f"{script}.lua: {unknown[0]!r} is no state of a job")
    return words


@cache
def ways_of(script: str) -> frozenset[tuple[str, str]]:
    """From which state to which a call may take a job: by one, or several in their order.

    A script that says `--@arrivals` takes in first what producers have left.
    """
    (path,) = (path for path in SCRIPTS.rglob(f"{script}.lua") if "lib" not in path.parts)
    takes_arrivals = re.search(r"^--@arrivals", path.read_text("utf-8"), re.MULTILINE)
    scripts = ["arrive", script] if takes_arrivals and script != "arrive" else [script]
    ways: set[tuple[str, str]] = set()
    for one in (one for name in scripts for one in every_transition() if one.script == name):
        ways |= {(way[0], one.target) for way in ways if way[1] == one.source}
        ways.add((one.source, one.target))
    return frozenset(ways)


def page() -> str:
    """The page of states, with what the headers say now."""
    text = PAGE.read_text("utf-8")
    for mark, block in (("diagram", _diagram()), ("table", _table())):
        pattern = rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)"
        text = re.sub(pattern, lambda m, b=block: m[1] + b + "\n" + m[2], text, flags=re.DOTALL)
    return text


def _diagram() -> str:
    """Without what an operator or a move does to any job, which would hide the rest."""
    shown = {one[1:4]: one for one in every_transition() if one.verb not in {"move_in", "move_out"}}
    arrows = [
        f"    {_mermaid(source)} --> {_mermaid(target)} : {verb}" for verb, source, target in shown
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", *arrows, "```"])


def _mermaid(state: str) -> str:
    return "[*]" if state == NONE else state


def _table() -> str:
    rows: dict[tuple[str, str, str], tuple[list[str], list[str]]] = {}
    for one in every_transition():
        sources, targets = rows.setdefault((one.verb, one.when, one.script), ([], []))
        sources += [one.source] if one.source not in sources else []
        targets += [one.target] if one.target not in targets else []
    lines = [
        f"| {verb} | {', '.join(sources)} | {', '.join(targets)} | {when} | `{script}` |"
        for (verb, when, script), (sources, targets) in sorted(rows.items())
    ]
    head = ["| verb | from | to | when | script |", "|---|---|---|---|---|"]
    return "\n".join([*head, *lines])


READ_STATES = Lua(
    "states",
    """
    local found = {}
    for i, state in ipairs(ARGV) do
      found[i] = redis.call('ZRANGE', KEYS[1] .. state, 0, -1)
    end
    return found
    """,
)


class StateWatch:
    """Looks at every job before and after each call of a script, and at nothing else."""

    def __init__(self, wire: Wire) -> None:
        self.seen: set[tuple[str, str, str]] = set()
        """Script, from, to."""
        self._wire = wire
        self._run: Callable[..., Awaitable[Any]] = wire.run
        wire.run = self._watched  # pyright: ignore[reportAttributeAccessIssue]

    async def _watched(self, script: Any, keys: Any, args: Any, **rest: Any) -> Any:
        if isinstance(script, Lua) or not keys:
            return await self._run(script, keys, args, **rest)
        before = await self._states(keys[0])
        reply = await self._run(script, keys, args, **rest)
        after = await self._states(keys[0])
        for job in before.keys() | after.keys():
            way = before.get(job, NONE), after.get(job, NONE)
            if way[0] != way[1]:
                assert way in ways_of(script.name), f"{script.name}: {' -> '.join(way)}"
                self.seen.add((script.name, *way))
        return reply

    async def _states(self, prefix: Any) -> dict[bytes, str]:
        found = await Wire.run(self._wire, READ_STATES, [prefix], list(State), patience_s=60)
        return {job: state.value for state, jobs in zip(State, found, strict=True) for job in jobs}
