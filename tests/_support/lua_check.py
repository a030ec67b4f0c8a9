"""Finds Lua files whose headers and bodies disagree.

`python -m tests._support.lua_check` lists what is wrong, with the file, and fails when anything is:
a name that comes from nowhere or from a part that is not included, an include or an export that
nobody uses, an export that changes after it was given away, a field of `context` that no part has,
an argument that is not used or that is read by its number.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from faena.engine.source import ARRIVALS, JOURNAL, NOW, Source, SourceError, Sources, read
from tests._support.findings import told
from tests._support.lua_names import Names, names_in

LUA = Path(__file__).resolve().parents[2] / "src" / "faena" / "engine" / "lua"

BY_LOADER = {"noted", "guarded", "take_in_first", "now_us"}
"""Exports that the loader uses."""

_OF_LUA = (
    *("error", "ipairs", "math", "next", "pairs", "pcall", "select", "string", "table"),
    *("tonumber", "tostring", "type", "unpack"),
)
_OF_SERVER = ("ARGV", "KEYS", "cjson", "cmsgpack", "redis", "struct")
_OF_LOADER = ("call", "context", "fresh_context")
GIVEN = {*_OF_LUA, *_OF_SERVER, *_OF_LOADER}
"""Names that every file has."""

_FIELD = re.compile(r"\bcontext\.(\w+)")
_NUMBERED = re.compile(r"ARGV\[\d|\(ARGV, ?\d|= ?\d+, ?#ARGV|#ARGV ?[<>=~]=? ?\d")


def problems(root: Path) -> list[str]:
    """What is wrong under a folder, each with its file."""
    try:
        sources = read(root)
        sources.needed(*sources.scripts.values(), *sources.parts.values())
    except SourceError as error:
        return [str(error)]
    return sorted(_Judge(sources).judge())


class _Judge:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._files = [*sources.scripts.values(), *sources.parts.values()]
        self._names = {file.path: names_in(_declared(file) + file.code) for file in self._files}
        self._owners = {name: part for part in sources.parts.values() for name in part.exports}
        self._fields = {f.name: part for part in sources.parts.values() for f in part.state}

    def judge(self) -> Iterator[str]:
        for file in self._files:
            names = self._names[file.path]
            yield from self._missing(file, names)
            yield from self._unused(file, names)
            yield from self._assigned(file, names)
            yield from self._arguments(file)
        yield from self._idle()

    def _missing(self, file: Source, names: Names) -> Iterator[str]:
        for name in sorted(names.free - GIVEN):
            owner = self._owners.get(name)
            if owner is None:
                yield f"{file.path} uses {name}, which nobody declares"
            elif owner.name not in file.includes:
                yield f"{file.path} uses {name} of {owner.path} and does not include it"
        for name in sorted(self._fields_of(file)):
            owner = self._fields.get(name)
            if owner is None:
                yield f"{file.path} uses context.{name}, which no part has in its --@state"
            elif owner.name not in file.includes and owner is not file:
                yield f"{file.path} uses context.{name} of {owner.path} and does not include it"

    def _unused(self, file: Source, names: Names) -> Iterator[str]:
        implied = {JOURNAL} if file.is_guarded else set[str]()
        if file.is_preceded:
            implied.add(ARRIVALS)
        for include in file.includes:
            part = self._sources.parts[include]
            used = {*part.exports} & names.free
            used |= {field.name for field in part.state} & self._fields_of(file)
            used |= {*_given(file)} & {include} & file.words()
            if not used and include not in implied:
                yield f"{file.path} includes {include} and uses nothing of it"

    def _assigned(self, file: Source, names: Names) -> Iterator[str]:
        for name in sorted({use.name for use in names.uses if use.is_assigned}):
            owner = self._owners.get(name)
            if owner is file:
                yield f"{file.path} exports {name}, which changes: keep it in `context`"
            elif owner is not None and name not in names.declared:
                yield f"{file.path} assigns {name}, which belongs to {owner.path}"

    def _arguments(self, file: Source) -> Iterator[str]:
        for name in sorted(file.args.locals().keys() - file.words()):
            yield f"{file.path} has {name} in its --@args, and does not use it"
        if file.name != NOW and _NUMBERED.search(file.code):
            yield f"{file.path} reads an argument by its number: name it in its --@args"

    def _idle(self) -> Iterator[str]:
        endings = {part.ending for part in self._sources.parts.values() if part.ending}
        used = BY_LOADER.union(endings, *(names.free for names in self._names.values()))
        fields = set[str]().union(*(self._fields_of(file) for file in self._files))
        needed = self._sources.needed(*self._sources.scripts.values())
        for part in self._sources.parts.values():
            if part not in needed:
                yield f"{part.path} is included by nobody"
            for name in part.exports:
                if name not in used:
                    yield f"{part.path} exports {name}, which nobody uses"
            for field in part.state:
                if field.name not in fields:
                    yield f"{part.path} has {field.name} in its --@state, which nobody uses"

    def _fields_of(self, file: Source) -> set[str]:
        return set(_FIELD.findall(file.code))


def _declared(file: Source) -> str:
    """What the loader declares in a body."""
    return f"local {', '.join(names)} = ARGV\n" if (names := _given(file)) else ""


def _given(file: Source) -> list[str]:
    has_now = NOW in file.includes and not file.path.startswith("lib/")
    return [*file.args.locals(), *([NOW] if has_now else [])]


if __name__ == "__main__":
    sys.exit(told("lua", problems(LUA)))
