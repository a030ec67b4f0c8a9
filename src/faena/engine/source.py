"""Reads the Lua files of the engine and their headers.

A file begins with comments. Comment lines with `--@` are directives for the loader:

    --@include keys, now       names of the parts whose exports the file uses
    --@exports count, whole    functions and constants that a part exports
    --@state counts = {}       a field of `context`, and its value at the start of a call
    --@ending flush_event      an export that runs after every writing script that uses the part
    --@flags no-writes         the flags of a script, as the server names them
    --@sure                    a script that writes without the journal
    --@arrivals                a script that first stores the jobs in `arrivals`
    --@args to, by?, id...     the names of a script's arguments

The first argument of every call is its instant, given by the engine: `now` in scripts that include
`now`. The arguments of `--@args` follow, and are local variables of the body. One with a question
mark may be omitted, and is empty then. The last one may be repeated, also together with others
(`id lease...`); the body has the index of the first one, `first_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from faena.errors import InternalError

_LINE = re.compile(r"^--@(\w+)(?: (.+))?$", re.MULTILINE)
_KNOWN = frozenset(("include", "exports", "state", "ending", "flags", "sure", "arrivals", "args"))
_DECLARED = re.compile(r"^local (?:function (\w+)|([\w, ]+))", re.MULTILINE)
_FIELD = re.compile(r"(\w+) = (\S+)(?:\s+--.*)?$")
_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"\s*--[^'\"]*$")
"""To the end of a line without a quote in it, so that it is not inside a string."""
_SPACED = re.compile(r" ?(==|~=|<=|>=|[=,<>+*/(){}]) ?")

_NAMES = re.compile(r"[a-z]\w*\??|[a-z]\w*(?: [a-z]\w*)*\.\.\.")

JOURNAL = "journal"
ARRIVALS = "take_in_arrivals"
NOW = "now"
"""The part that reads the first argument."""

T = TypeVar("T")


class SourceError(ValueError):
    """A file whose header is wrong: it does not match the body or the other files."""


class Field(NamedTuple):
    """A field of `context`, and its value at the start of a call."""

    name: str
    value: str


class Arguments(NamedTuple):
    """The arguments of a script after the instant, in order."""

    names: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    repeated: tuple[str, ...] = ()

    def arranged(
        self, script: str, rest: Sequence[T], named: Mapping[str, T | None]
    ) -> list[T | str]:
        """Named values in the order of the header; an optional one may be None or left out."""
        given = {name: value for name, value in named.items() if value is not None}
        if unknown := sorted(named.keys() - {*self.names}):
            raise InternalError(f"{script} does not take {', '.join(unknown)}")
        if missing := sorted({*self.names} - self.optional - given.keys()):
            raise InternalError(f"{script} must be given {', '.join(missing)}")
        if (rest and not self.repeated) or len(rest) % max(1, len(self.repeated)):
            raise InternalError(f"{script} must be given {' '.join(self.repeated) or 'no more'}")
        return [*(given.get(name, "") for name in self.names), *rest]

    def locals(self) -> dict[str, str]:
        """The local variables of the body, with their Lua expressions."""
        found = {name: f"ARGV[{at}]" for at, name in enumerate(self.names, 2)}
        if self.repeated:
            found[f"first_{self.repeated[0]}"] = str(len(self.names) + 2)
        return found


NO_ARGUMENTS = Arguments()


@dataclass(frozen=True, slots=True)
class Source:
    """One file, a script or a part."""

    path: str
    name: str
    includes: tuple[str, ...]
    exports: tuple[str, ...]
    state: tuple[Field, ...]
    ending: str | None
    """An export that is called after the body of a script."""
    args: Arguments
    flags: tuple[str, ...]
    is_guarded: bool
    """Whether a failed call is rolled back."""
    is_preceded: bool
    """Whether it first stores the jobs in `arrivals`."""
    code: str

    def words(self) -> set[str]:
        """Every word of the code, including names."""
        return set(_WORD.findall(self.code))


@dataclass(frozen=True, slots=True)
class Sources:
    """All files, by name."""

    scripts: dict[str, Source]
    parts: dict[str, Source]

    def needed(self, *sources: Source) -> list[Source]:
        """The parts that some files use, each after those that it uses itself."""
        found: dict[str, Source] = {}
        for source in sources:
            self._collect(source, found, ())
        return list(found.values())

    def _collect(self, source: Source, found: dict[str, Source], above: tuple[str, ...]) -> None:
        for name in source.includes:
            if name in above:
                raise SourceError(f"{source.path} includes {name}, which includes {source.path}")
            if name not in self.parts:
                raise SourceError(f"{source.path} includes {name}, which is not in lib/")
            if name not in found:
                self._collect(self.parts[name], found, (*above, name))
                found[name] = self.parts[name]

    def endings(self, script: Source) -> list[str]:
        """The endings to call after a script; a part's comes before those of parts it uses."""
        if "no-writes" in script.flags:
            return []
        return [part.ending for part in reversed(self.needed(script)) if part.ending]

    def imports(self, source: Source) -> list[str]:
        """The names that a file imports from the parts it includes."""
        words = source.words()
        exports = (name for part in source.includes for name in self.parts[part].exports)
        return sorted({name for name in exports if name in words})


def read(root: Path) -> Sources:
    """Read all files in a folder: parts in `lib/`, scripts outside it; names must be unique."""
    scripts, parts = dict[str, Source](), dict[str, Source]()
    for file in sorted(root.rglob("*.lua")):
        path = file.relative_to(root).as_posix()
        is_part = path.startswith("lib/")
        source = _source(path, file.read_text("utf-8"), is_part=is_part)
        if other := parts.get(source.name) or scripts.get(source.name):
            raise SourceError(f"{path} has the same name as {other.path}")
        (parts if is_part else scripts)[source.name] = source
    owners: dict[str, Source] = {}
    for part in parts.values():
        for name in part.exports:
            other = owners.setdefault(name, part)
            if other is not part:
                raise SourceError(f"{part.path} exports {name}, and so does {other.path}")
    return Sources(scripts, parts)


def _source(path: str, text: str, *, is_part: bool) -> Source:
    said: dict[str, list[str]] = {}
    for word, rest in _LINE.findall(text):
        if word not in _KNOWN:
            raise SourceError(f"{path} has --@{word}, which is not a directive")
        said.setdefault(word, []).append(rest)
    flags = tuple(flag for line in said.get("flags", ()) for flag in line.split())
    is_guarded = not is_part and "no-writes" not in flags and "sure" not in said
    includes, exports = _listed(said, "include"), _listed(said, "exports")
    for missing in sorted({*exports} - _declared(text)):
        raise SourceError(f"{path} exports {missing}, which it does not declare")
    if is_guarded:
        includes += (JOURNAL,)
    is_preceded = "arrivals" in said
    if is_preceded and ARRIVALS not in includes:
        includes += (ARRIVALS,)
    state = tuple(_field(path, line) for line in said.get("state", ()))
    ending = next(iter(said.get("ending", ())), None)
    if ending and ending not in exports:
        raise SourceError(f"{path} ends with {ending}, which it does not export")
    name = path.rpartition("/")[2].removesuffix(".lua")
    code = "\n".join(_code(text.splitlines()))
    return Source(
        *(path, name, includes, exports, state, ending, _arguments(path, _listed(said, "args"))),
        *(flags, is_guarded, is_preceded, code),
    )


def _listed(said: dict[str, list[str]], word: str) -> tuple[str, ...]:
    return tuple(name.strip() for line in said.get(word, ()) for name in line.split(","))


def _arguments(path: str, words: tuple[str, ...]) -> Arguments:
    if words in {(), ("none",)}:
        return NO_ARGUMENTS
    for word in words:
        if not _NAMES.fullmatch(word) or (word.endswith("...") and word != words[-1]):
            raise SourceError(f"{path} has --@args {word}, which is not name, name? or name...")
    last = words[-1].removesuffix("...")
    repeated = tuple(last.split()) if last != words[-1] else ()
    single = words[:-1] if repeated else words
    names = tuple(word.removesuffix("?") for word in single)
    if len({*names}) < len(names):
        raise SourceError(f"{path} names an argument twice")
    return Arguments(names, frozenset(word[:-1] for word in single if word[-1] == "?"), repeated)


def _field(path: str, line: str) -> Field:
    found = _FIELD.match(line)
    if found is None:
        raise SourceError(f"{path} has --@state {line}, which is not name = value")
    return Field(*found.groups())


def _declared(text: str) -> set[str]:
    found = _DECLARED.findall(text)
    return {name for one, several in found for name in _WORD.findall(one or several)}


def _code(lines: Iterable[str]) -> Iterator[str]:
    """Remove comments and extra spaces, which would cost memory in every node."""
    for line in lines:
        if (code := line.strip()) and not code.startswith("--"):
            code = _COMMENT.sub("", code)
            yield code if "'" in code or '"' in code else _SPACED.sub(r"\1", code)
