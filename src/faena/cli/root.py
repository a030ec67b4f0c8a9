"""The group of all commands; turns every error into one line and an exit code.

0 is success, 1 an error, 2 wrong input (an argument, an option, a variable, an app), 130 an
interruption.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Final

import click
import msgspec

from faena.cli.catalogue import RootCommands
from faena.cli.output import Output
from faena.errors import (
    ConfigError,
    FaenaError,
    InvalidTransition,
    JobNotFound,
    PayloadError,
    StoreError,
    StoreRejected,
    StoreUnavailable,
)

_NEXT: Final[tuple[tuple[type[FaenaError], str | None, str], ...]] = (
    (
        StoreUnavailable,
        None,
        "start the broker, or correct its address: the app's url, or FAENA_URL",
    ),
    (StoreRejected, None, "check the broker with `faena doctor`"),
    (JobNotFound, "flow", "`faena flow list` lists running flows, `--ended` the others"),
    (JobNotFound, "group", "`faena groups` lists open groups, `--ended` the others"),
    (JobNotFound, "redrive", "`faena dlq redrives QUEUE` lists the last redrives"),
    (JobNotFound, "dlq", "`faena dlq list` lists the dead jobs"),
    (JobNotFound, None, "`faena jobs` lists the jobs of a queue"),
    (InvalidTransition, "flow", "`faena flow show` shows it"),
    (
        InvalidTransition,
        "redrive",
        "`faena dlq list` lists dead jobs, `faena dlq redrive QUEUE --resume ID` continues",
    ),
    (InvalidTransition, "dlq", "`faena dlq show` shows it"),
    (InvalidTransition, "remove", "`faena schedules pause` pauses it"),
    (InvalidTransition, "remove_job", "`faena job` shows it"),
    (InvalidTransition, "run", "the app's middleware must let its jobs pass"),
    (InvalidTransition, "reshard", "`faena shards` shows how many there are"),
    (InvalidTransition, "move", "`faena shards` shows what is moving"),
    (InvalidTransition, "obliterate", "use --force to remove it anyway"),
    (InvalidTransition, None, "`faena job` shows it"),
)
"""Advice for errors of the library, which does not know that a command line is used: by error and
operation, None for any other operation."""
_AWAY: Final = "start it, or correct its address: the url of Postgres(), or FAENA_PG_URL"


_MEANT: Final[Mapping[str, Sequence[str]]] = {
    "--retry": ("--attempts",),
    "--retries": ("--attempts",),
    "--queue": ("--queues",),
    "--force": ("--yes",),
}
"""Options that users may try, and their names here, if the command has them."""

_CLOSE: Final = 0.75


@click.group(cls=RootCommands, invoke_without_command=True)
@click.version_option(package_name="faena", prog_name="faena")
@click.pass_context
def roof(ctx: click.Context) -> None:
    """Background jobs: run workers, inspect queues, retry jobs.

    MODULE:APP is the app, such as shop.tasks:app, and may be set in FAENA_APP instead.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    output = Output()
    words = sys.argv[1:] if args is None else list(args)
    options = words[: words.index("--")] if "--" in words else words
    output.is_json = "--json" in options  # also if the command line cannot be parsed
    if output.is_json and not logging.getLogger().handlers:
        # Unconfigured log lines would appear between the objects; `faena worker` configures logs.
        logging.getLogger().addHandler(logging.NullHandler())
    try:
        code = roof.main(args, prog_name="faena", obj=output, standalone_mode=False)
    except BrokenPipeError:
        return _deaf()
    except SystemExit as end:  # raised by click when the reader of a pipe has gone
        return end.code if isinstance(end.code, int) else 1
    except BaseException as error:  # noqa: BLE001 - every error becomes a line
        return _explain(error, output)
    return code if isinstance(code, int) else 0


def _explain(error: BaseException, output: Output) -> int:
    """Print an error as one line, or as one JSON object."""
    if isinstance(error, click.Abort) and isinstance(error.__cause__, KeyboardInterrupt):
        error = error.__cause__  # click raises Abort for Ctrl-C at a question
    if output.is_debug:
        traceback.print_exception(error)
    told, code = _line(error)
    line = " ".join(told.split())
    if output.is_json:
        document = {"code": _name(error), "message": line, "exit_code": code}
        line = msgspec.json.encode(document).decode()
    else:
        line = f"faena: {line}"
    sys.stdout.flush()
    sys.stderr.write(f"{line}\n")
    return code


def _name(error: BaseException) -> str:
    """The error's type in the JSON object: job_not_found, usage_error."""
    if isinstance(error, click.UsageError):
        return "usage_error"
    if isinstance(error, click.ClickException | click.Abort):
        return "refused"
    if isinstance(error, FaenaError):
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "unexpected_error"


def _line(error: BaseException) -> tuple[str, int]:
    match error:
        case click.ClickException():
            return _usage(error) if isinstance(error, click.UsageError) else _said(error)
        case click.Abort():
            return "nothing was done: answer y, or use --yes", 1
        case FaenaError():
            advice = _advice(error)
            return f"{error}; {advice}" if advice else str(error), _code(error)
        case KeyboardInterrupt():
            return f"interrupted; {error}" if str(error) else "interrupted", 130
        case _:
            what = f"{type(error).__name__}: {error}"
            return f"unexpected error, {what}; --debug shows the traceback, please report it", 1


def _usage(error: click.UsageError) -> tuple[str, int]:
    _name_variable(error)
    is_unknown = isinstance(error, click.NoSuchOption)
    told = _no_option(error) if is_unknown else error.format_message()
    path = error.ctx.command_path if error.ctx else "faena"
    return f"{_lower(told)}; see `{path} --help`", 2


def _said(error: click.ClickException) -> tuple[str, int]:
    return _lower(error.format_message()), error.exit_code


def _code(error: FaenaError) -> int:
    """2 for wrong input. A broker whose configuration could lose jobs is no input, although the
    library raises ConfigError for it too.
    """
    if isinstance(error, ConfigError):
        return 1 if error.field == "maxmemory-policy" else 2
    return 2 if isinstance(error, PayloadError) else 1


def _advice(error: FaenaError) -> str | None:
    if isinstance(error, StoreError) and (place := _raised_in(error)).startswith("faena.pg."):
        is_away = isinstance(error, StoreUnavailable) and place == "faena.pg.failure"
        return _AWAY if is_away else None
    fitting = (
        words for kind, op, words in _NEXT if isinstance(error, kind) and op in {error.op, None}
    )
    return next(fitting, None)


def _raised_in(error: FaenaError) -> str:
    """The module that raised it: errors of PostgreSQL and its archives are not the broker's."""
    place, step = "", error.__traceback__
    while step is not None:
        place, step = str(step.tb_frame.f_globals.get("__name__", "")), step.tb_next
    return place


def _no_option(error: click.NoSuchOption) -> str:
    """Suggest only a very similar option, or one that is known to be meant."""
    given = error.option_name
    known = {name for one in error.ctx.command.params for name in one.opts} if error.ctx else set()
    close = difflib.get_close_matches(given, error.possibilities or (), n=1, cutoff=_CLOSE)
    meant = [one for one in _MEANT.get(given, ()) if one in known] or close
    return f"no such option {given!r}" + (f"; did you mean {meant[0]!r}?" if meant else "")


def _name_variable(error: click.UsageError) -> None:
    """Name the environment variable if the bad value came from one."""
    if not isinstance(error, click.BadParameter) or error.param is None or error.ctx is None:
        return
    source = error.ctx.get_parameter_source(error.param.name or "")
    if source is click.core.ParameterSource.ENVIRONMENT:
        error.param_hint = f"{error.param.envvar}"


def _lower(message: str) -> str:
    text = message.rstrip(".")
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def _deaf() -> int:
    """The reader has gone, as with `| head`; the interpreter must not complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
