"""The README and the quickstart, followed to the letter.

A Python block with a file name is written to that file, one without is a program of its own. A
console block is typed in: what follows a command is what it must print, and a command that ends
with `&` runs until the page is over. Of the other pages every Python block must at least be Python,
and every link of every page must lead somewhere.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "bench" / "README.md"])
_BLOCK = re.compile(r"^```(\w+) ?([\w.]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    language: str
    file: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    return [Block(*found.groups()) for found in _BLOCK.finditer(page.read_text("utf-8"))]


class Reader:
    """Somebody who does what a page says, in a directory of their own."""

    def __init__(self, directory: Path, background: ExitStack) -> None:
        self._directory = directory
        self._background = background

    def follow(self, block: Block) -> None:
        if block.language == "console":
            for command, printed in typed_in(block.text):
                self._type(command, printed)
        elif block.language == "python":
            name = block.file or "block.py"
            (self._directory / name).write_text(block.text, "utf-8")
            if not block.file:
                self._type(f"python {name}", None)

    def _type(self, command: str, printed: str | None) -> None:
        words = command.removesuffix("&").split()
        argv = [*program(words[0]), *words[1:]]
        if command.endswith("&"):
            self._background.enter_context(running(argv, self._directory))
            return
        done = subprocess.run(
            argv, cwd=self._directory, env=bare(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if printed is not None:
            assert done.stdout == printed, command


def typed_in(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, and what it prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def program(name: str) -> list[str]:
    known = {"python": [sys.executable], "faena": [sys.executable, "-m", "faena"]}
    assert name in known, f"a console block may use {sorted(known)}, got {name!r}"
    return known[name]


def bare() -> dict[str, str]:
    """An environment that names no broker, so that programs get one of their own."""
    names = ("FAENA_", "REDIS_", "WORKER_")
    return {name: value for name, value in os.environ.items() if not name.startswith(names)}


@contextmanager
def running(argv: list[str], directory: Path) -> Iterator[None]:
    with (directory / "background.log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=directory, env=bare(), stdout=log, stderr=log)
    try:
        yield
        process.terminate()
        assert process.wait(60) == 0, (directory / "background.log").read_text("utf-8")
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_a_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    with ExitStack() as background:
        reader = Reader(tmp_path, background)
        for block in blocks_of(ROOT / page):
            reader.follow(block)


def test_the_readme_shows_the_example_that_is_there() -> None:
    (shown,) = [block for block in blocks_of(ROOT / "README.md") if block.language == "python"]
    example = (ROOT / "examples" / "quickstart.py").read_text("utf-8")
    assert example.endswith(shown.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_python_block_is_python(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "python":
            compile(block.text, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text("utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors_of(target), f"{link} has no such heading"


def anchors_of(page: Path) -> set[str]:
    headings = _HEADING.findall(page.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_file_that_the_internals_name_is_there() -> None:
    source = ROOT / "src" / "faena"
    there = [f"/{path.relative_to(source)}" for path in source.rglob("*.*")]
    text = (ROOT / "docs" / "design" / "internals.md").read_text("utf-8")
    named = set(re.findall(r"[\w/]+\.(?:py|lua)\b", text))
    assert len(named) > 50
    missing = {name for name in named if not any(path.endswith(f"/{name}") for path in there)}
    assert missing == set()


def test_the_index_has_every_decision_by_its_title() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    for page in (ROOT / "docs" / "decisions").glob("*.md"):
        number, title = page.read_text("utf-8").split("\n", 1)[0][2:].split(". ", 1)
        assert f"| [{number}](decisions/{page.name}) | {title} |" in index


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150
