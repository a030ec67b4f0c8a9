"""Refuses unknown keyword arguments as unknown options are: with the nearest valid name; and those
that are missing."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from faena.errors import ConfigError, unknown_name

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def known_keywords(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function raise ConfigError for unknown and missing arguments; the message names
    `what`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        code = function.__code__
        names = code.co_varnames[
            code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount
        ]
        known = [name for name in names if name != "self"]
        ordered, named = code.co_varnames[: code.co_argcount], names[code.co_argcount :]
        ordered = ordered[: len(ordered) - len(function.__defaults__ or ())]
        named = [name for name in named if name not in (function.__kwdefaults__ or {})]

        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            for name, value in given.items():
                if name not in known:
                    raise unknown_name(f"{what} option", name, known, value=value)
            for name in (*ordered[len(args) :], *named):
                if name not in given:
                    raise ConfigError(f"{what} {name} must be given, got none", field=name)
            return function(*args, **given)

        return call

    return decorate


def known_fields(what: str) -> Callable[[type[T]], type[T]]:
    """Like `known_keywords`, for a dataclass."""

    def decorate(cls: type[T]) -> type[T]:
        cls.__init__ = known_keywords(what)(cls.__init__)
        return cls

    return decorate
