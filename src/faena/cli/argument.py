"""The arguments and options that commands share.

MODULE:APP is the first argument or comes from FAENA_APP. It is recognised by its colon, which no
queue's name contains.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click

from faena.cli.output import Output
from faena.errors import ConfigError, nearest
from faena.limits import Limit
from faena.values.duration import to_us
from faena.values.names import check_label

_BY = "FAENA_BY"
_DESTRUCTIVE = frozenset({"clean", "discard", "drain", "obliterate", "remove"})
"""Commands that are never suggested for a typo."""

F = TypeVar("F", bound=Callable[..., Any])


class FromVariable(str):
    """MODULE:APP taken from FAENA_APP, which errors then name."""

    __slots__ = ()


class _Read(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] - generic only of late
    """An option parsed by a function of the library."""

    def __init__(self, name: str, valid: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._valid = valid
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (ConfigError, ValueError):
            self.fail(f"it must be {self._valid}, got {value!r}", param, ctx)


class Whole(click.IntRange):
    """A whole number between bounds, with errors worded as in the library."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"it must be a whole number{self._bounds()}, got {value!r}", param, ctx)

    def _describe_range(self) -> str:
        """Shown by `--help` instead of inequalities."""
        return self._bounds().strip()

    def _bounds(self) -> str:
        if self.min is None:
            return ""
        return f" from {self.min} to {self.max}" if self.max else f" of at least {self.min}"


def _duration(text: str) -> str:
    to_us("duration", text)
    return text


def _lasting(text: str) -> str:
    to_us("duration", text, least_us=1)
    return text


def _window(text: str) -> str:
    to_us("duration", text, least_us=60_000_000, most_us=30 * 86_400_000_000)
    return text


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    return at


def _moment(text: str) -> datetime:
    return _instant(f"{text}T00:00Z" if _DAY.fullmatch(text) else text)


def _expiry(text: str) -> str | datetime:
    try:
        return _duration(text)
    except ConfigError:
        return _instant(text)


_INSTANTS = "an instant with a time zone, such as 2026-05-01T09:00Z or 2026-05-01T09:00+02:00"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DURATIONS = "a duration such as 90s, 5m, 1h30m or 7d"

DURATION = _Read("duration", _DURATIONS, _duration)
LASTING = _Read("duration", f"{_DURATIONS}, longer than 0s", _lasting)
WINDOW = _Read("duration", "a duration from 1m to 30d, such as 24h", _window)
INSTANT = _Read("instant", _INSTANTS, _instant)
MOMENT = _Read("day or instant", f"a day in UTC such as 2026-05-01, or {_INSTANTS}", _moment)
EXPIRY = _Read("expiry", f"{_DURATIONS}, or {_INSTANTS}", _expiry)
_SIZES = "a size of at least 16Mi, such as 512Mi or 1Gi"


def _size(text: str) -> int:
    from faena.pool import read_size  # noqa: PLC0415 - not needed for --help

    return read_size("size", text)


SIZE = _Read("size", _SIZES, _size)
NUMBER = _Read("number", "a number such as 2 or 0.5", float)
_RATES = "jobs per time such as 10/s, 100/min or 500/30s"
RATE = _Read("rate", _RATES, Limit)
TENANT_RATE = _Read("rate", f"{_RATES}; --no-limits sets none", Limit)


class Commands(click.Group):
    """A group of commands."""

    meant: Mapping[str, str] = {}
    """Words that are not commands, and hints for those who try them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help if no command is given."""
        if not args and not self.invoke_without_command:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse an unknown command and suggest the nearest one."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            hint = self.meant.get(args[0]) or nearest(args[0], known, never=_DESTRUCTIVE)
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


class ListedCommands(Commands):
    """Commands of which one is meant unless the first argument is a command."""

    usual = "list"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the one that is meant where only an app or options are given."""
        is_told = bool(args) and (args[0] == "--help" or not re.search("^-|:", args[0]))
        return super().parse_args(ctx, args if is_told else [self.usual, *args])


def words(metavar: str) -> Callable[[F], F]:
    """The arguments of a command, which `split` takes apart."""
    return click.argument("words", nargs=-1, metavar=metavar)


def common(command: F) -> F:
    """The options that every command has."""
    command = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_set("is_json"),
        help="Print one JSON document instead of text.",
    )(command)
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_set("is_debug"),
        help="Show the traceback of errors.",
    )(command)


def by(command: F) -> F:
    """Who runs the command; recorded with the change."""
    return click.option(
        "--by",
        envvar=_BY,
        default=_whoever,
        show_default="FAENA_BY, or user@host",
        callback=_check_by,
        help="Who does this; recorded with the change.",
    )(command)


def whoever() -> str:
    """Who runs a command whose --by means something else."""
    return check_label("by", os.environ.get(_BY) or _whoever())


def _whoever() -> str:
    """The current user and host, in characters that a label may have."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        user = "operator"
    return re.sub(r"[^\w@.+-]", "-", f"{user}@{socket.gethostname()}")[:128]


def _check_by(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    try:
        return check_label("by", value)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from None


def _set(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def callback(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        output = ctx.find_object(Output)
        if value and output is not None:
            setattr(output, name, True)

    return callback


def split(given: Sequence[str], *names: str, rest: str | None = None) -> tuple[str, list[str]]:
    """MODULE:APP and the arguments after it: one for each of `names`, then any number of `rest`."""
    words = list(given)
    is_given = bool(words) and ":" in words[0]
    target = words.pop(0) if is_given else FromVariable(os.environ.get("FAENA_APP", ""))
    if not target:
        got = f", got {words[0]!r}" if words else ""
        raise click.UsageError(
            f"MODULE:APP must be given first, such as shop.tasks:app, or be in FAENA_APP{got}"
        )
    if len(words) < len(names):
        raise click.UsageError(f"{names[len(words)]} must be given")
    if rest is None and len(words) > len(names):
        raise click.UsageError(f"unexpected extra argument {words[len(names)]!r}")
    return target, words


def confirm(question: str, *, yes: bool) -> None:
    """Ask on standard error; standard output is for results."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.ClickException("nothing was done: no terminal for the confirmation; use --yes")
    click.confirm(question, abort=True, err=True)


def example(*lines: str) -> str:
    """The end of a command's help."""
    return "\n".join(("\b", "Example:", *(f"  {line}" for line in lines)))
