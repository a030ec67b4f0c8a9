"""Sets up the log of a process: one handler, standard error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple, get_args

from faena.options.fields import check_choice
from faena.telemetry.logging.format import JsonFormatter, PlainFormatter, PrettyFormatter

Style = Literal["json", "pretty", "plain"]

STYLES: Final[tuple[Style, ...]] = get_args(Style)
LEVELS: Final = ("debug", "info", "warning", "error", "critical")

_FORMATTERS: Final[Mapping[Style, Callable[[], logging.Formatter]]] = {
    "json": JsonFormatter,
    "pretty": PrettyFormatter,
    "plain": PlainFormatter,
}


class LogSetup(NamedTuple):
    """How the log of a process is written."""

    style: Style
    level: str


def configure(style: Style | None = None, level: str = "info") -> None:
    """Write every record from `level` up to standard error, instead of to any other handler.

    Without `style`: pretty on a terminal, plain elsewhere.
    """
    chosen = style or ("pretty" if sys.stderr.isatty() else "plain")
    check_choice("style", chosen, STYLES)
    check_choice("level", level.lower(), LEVELS)
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATTERS[chosen]())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def configured() -> LogSetup | None:
    """How this process's log is set up, for a child process; None if Faena did not do it."""
    root = logging.getLogger()
    for handler in root.handlers:
        for style, formatter in _FORMATTERS.items():
            if type(handler.formatter) is formatter:
                level = logging.getLevelName(root.level).lower()
                return LogSetup(style, level if level in LEVELS else "info")
    return None
