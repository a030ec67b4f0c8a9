"""Progress bars for long work, on standard error, and only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

from faena.cli.output import Output

Advance: TypeAlias = Callable[[int], None]


@contextmanager
def progress(output: Output, what: str, total: int | None = None) -> Generator[Advance]:
    """A bar for `total` items, None if unknown; it disappears when the work is done."""
    if not is_shown(output):
        yield lambda _number: None
        return
    from rich.console import Console  # noqa: PLC0415 - most commands need no bar
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda number: bar.advance(task, number)


def is_shown(output: Output) -> bool:
    """Whether standard error is a terminal and the output is text."""
    return not output.is_json and sys.stderr.isatty()
