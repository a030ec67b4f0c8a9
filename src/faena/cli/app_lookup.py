"""Finds the app of MODULE:APP; modules in the current directory can be imported too."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from faena.app import Faena
from faena.cli.argument import FromVariable, split
from faena.errors import ConfigError, UnknownQueue, nearest
from faena.queue import Queue

_WORD = "MODULE:APP"
_VARIABLE = "FAENA_APP"
_TARGET = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<app>[^\W\d]\w*(\.[^\W\d]\w*)*)")


def find_app(target: str) -> Faena:
    """The app named by a string such as "shop.tasks:app"."""
    found = _TARGET.fullmatch(target)
    if found is None:
        raise _wrong(
            target, f"{_source(target)} must be of the form shop.tasks:app, got {target!r}"
        )
    module = _import(found["module"], target)
    value: object = module
    for name in found["app"].split("."):
        if not hasattr(value, name):
            raise _wrong(target, f"module {module.__name__} has no {name!r}{_apps(module, name)}")
        value = getattr(value, name)
    if not isinstance(value, Faena):
        kind = type(value).__name__
        raise _wrong(target, f"{target} must be a Faena app, got {kind}{_apps(module, '')}")
    return value


def find_queue(app: Faena, name: str) -> Queue:
    """A queue of the app by its name."""
    if name not in app.queues:
        hint = nearest(name, app.queues) if app.queues else "it declares none"
        raise UnknownQueue(
            f"no queue {name!r} in app {app.name}; {hint}", field="queue", value=name
        )
    return app.queues[name]


def app_and_queue(
    words: Sequence[str], *names: str, rest: str | None = None
) -> tuple[Faena, Queue, list[str]]:
    """The app and the queue that the words of a command name, and the words behind them."""
    target, (queue, *others) = split(words, "QUEUE", *names, rest=rest)
    app = find_app(target)
    return app, find_queue(app, queue), others


def app_and_queues(words: Sequence[str]) -> tuple[Faena, list[Queue]]:
    """The app and the queues that the words of a command name; all without any."""
    target, names = split(words, rest="QUEUE")
    app = find_app(target)
    return app, [find_queue(app, name) for name in names] or list(app.queues.values())


def _import(name: str, target: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, target, error) from error
        message = (
            f"no module {error.name!r} in the current directory or among installed packages: "
            "change to its directory, or correct its name"
        )
        raise _wrong(target, message) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, target, error) from error


def _broken(name: str, target: str, error: BaseException) -> ConfigError:
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return _wrong(target, f"cannot import {name}: {what} ({_place(error)}); fix it and try again")


def _place(error: BaseException) -> str:
    """The innermost line in the user's own code."""
    if isinstance(error, SyntaxError):
        return f"{_short(error.filename or '?')}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(frame.filename)]
    last = (own or frames)[-1]
    return f"{_short(last.filename)}, line {last.lineno}"


def _is_own(file: str) -> bool:
    return Path(file).is_relative_to(Path.cwd()) and "site-packages" not in file


def _short(file: str) -> str:
    path = Path(file)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file


def _apps(module: ModuleType, name: str) -> str:
    apps = [key for key, value in vars(module).items() if isinstance(value, Faena)]
    return f"; {nearest(name, apps)}" if apps else ": it declares no app"


def _wrong(target: str, message: str) -> ConfigError:
    source = _source(target)
    told = message if source in message or source == _WORD else f"{source} is wrong: {message}"
    return ConfigError(told, field=source, value=target)


def _source(target: str) -> str:
    """Where MODULE:APP came from."""
    return _VARIABLE if isinstance(target, FromVariable) else _WORD
