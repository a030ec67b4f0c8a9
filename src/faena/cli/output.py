"""What a command prints on standard output: a table for people, or one JSON document.

Control characters in strings from jobs are escaped, so that no job can send escape sequences to the
operator's terminal.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from faena.cli.json_output import document as as_document
from faena.cli.json_output import page
from faena.outcomes import ErrorRecord

if TYPE_CHECKING:  # not needed for help and JSON
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_WIDE = 10_000
"""Columns if the output is not a terminal: nothing is cut, and grep sees whole lines."""

_LEAST_TEXT = 24
"""The least width of a column of free text on a narrow terminal."""


class Output:
    """Prints the result of a command, as text or as JSON."""

    def __init__(self) -> None:
        self.is_json = False
        self.is_debug = False

    def show(self, document: Any, view: Callable[[Console], None]) -> None:
        """Print the document, or let `view` draw it."""
        if self.is_json:
            sys.stdout.write(msgspec.json.encode(as_document(document)).decode() + "\n")
        else:
            from rich.console import Console  # noqa: PLC0415

            width = None if sys.stdout.isatty() else _WIDE
            view(Console(width=width, highlight=False, soft_wrap=True))
        sys.stdout.flush()

    def list(
        self, items: Iterable[Any], view: Callable[[Console], None], cursor: str | None = None
    ) -> None:
        """Like `show`, for a list, which has the same form in every command."""
        self.show(page(items, cursor), view)

    def say(self, document: Any, line: str) -> None:
        """Like `show`, for a single line."""
        self.show(document, lambda console: console.out(plain(line), highlight=False))


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    spare: Sequence[str] = (),
    text: str | None = None,
    none: str = "none",
) -> Table | Text:
    """A plain table, one line per row, numbers aligned right. Without rows it is the text `none`.

    Names and ids are never cut or wrapped: if the table is too wide for the terminal, it leaves out
    the columns in `spare`, in this order, and cuts the column of free `text`.
    """
    from rich.text import Text  # noqa: PLC0415

    lines = [list(row) for row in rows]
    if not lines:
        return Text(none)
    columns = {name: [row[at] for row in lines] for at, name in enumerate(headings)}
    left, room = [*spare], terminal_width()
    while (made := _drawn(columns, {text: _LEAST_TEXT})).width > room and left:
        columns.pop(left.pop(0))
    made = _drawn(columns, {})
    if made.width > room and text in columns:
        longest = max(len(str(cell)) for cell in columns[text])
        made = _drawn(columns, {text: max(_LEAST_TEXT, longest - (made.width - room))})
    gone = [name for name in spare if name not in columns]
    if gone:
        made.caption = Text(f"no room for: {', '.join(gone)}", style="dim")
        made.caption_justify = "left"
    return made


def terminal_width() -> int:
    """The width of the output, in characters."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE


def _drawn(columns: Mapping[str, Sequence[object]], most: Mapping[str | None, int]) -> Any:
    """A table of its natural width; `most` is the greatest width of some columns."""
    from rich import box  # noqa: PLC0415
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    width = 0
    for name, cells in columns.items():
        texts = [_shown(cell) for cell in cells]
        lines = [name, *(line for text in texts for line in text.split("\n"))]
        wide = min(max(map(cell_len, lines)), most.get(name, _WIDE))
        justify = "right" if all(isinstance(cell, int | None) for cell in cells) else "left"
        made.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis", width=wide)
        width += wide
    for row in zip(*columns.values(), strict=True):
        made.add_row(*(Text(_shown(cell)) for cell in row))
    made.width = width + 3 * (len(columns) - 1)
    return made


def _shown(cell: object) -> str:
    return "" if cell is None else plain(str(cell))


def facts(pairs: Iterable[tuple[str, object]]) -> Table:
    """Names and values, one pair per line; pairs with None are left out."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column()
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            made.add_row(Text(name, style="bold"), Text(plain(str(value))))
    return made


def counted(number: int, noun: str) -> str:
    """A number and its noun: "1 job", "2 jobs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def plain(text: str) -> str:
    """The text with control characters escaped, except line ends."""
    return "".join(
        sign if sign.isprintable() or sign == "\n" else sign.encode("unicode_escape").decode()
        for sign in text
    )


def failures(console: Console, errors: Iterable[ErrorRecord]) -> None:
    """Print the failed attempts of a job: which, when, on which worker, what went wrong."""
    from rich.text import Text  # noqa: PLC0415

    for error in errors:
        ended = {"EXPIRED": "expired", "WORKER_LOST": "lost"}.get(error.code or "", "no attempt")
        head = f"attempt {error.attempt}" if error.attempt else ended
        at = f" at {instant(error.at)}" if error.at else ""
        on = f" on {error.worker}" if error.worker else ""
        said = f"\n{head}{at}{on}: {titled(error.name, error.code)}: {error.message}"
        console.print(Text(plain(said), style="bold"))
        console.print(Text(plain((error.stack or "").rstrip())))


def titled(name: str, code: str | None) -> str:
    """An error's name, with its code where it has one."""
    return f"{name} ({code})" if code else name


def attempts(made: int, most: int | None) -> str:
    """The number of attempts made, and the most if known."""
    return str(made) if most is None else f"{made} of {most}"


def instant(us: int | None, zone: str = "UTC") -> str | None:
    """An instant of the server as readable text, with its time zone."""
    if us is None:
        return None
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - as above

    at = datetime.fromtimestamp(us / 1e6, ZoneInfo(zone))
    return f"{at:%Y-%m-%d %H:%M:%S} {zone}"
