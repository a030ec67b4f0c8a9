"""Sends exceptions from a child process to its worker, which treats them like its own.

Exceptions are not pickled, because a user's class may fail, hang or do anything else when it is
unpickled. A child sends plain values: the facts of the error record, the name of the class, and
those arguments and attributes that are plain. The worker makes an exception of the same class from
them, without running any code of that class.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import BuiltinFunctionType
from typing import Any, Final
from uuid import UUID

from faena.worker.execute.failure import Facts, RemoteTraceback, facts_of

_LEAVES: Final = (
    *(type(None), bool, int, float, complex, str, bytes),
    *(date, timedelta, Decimal, UUID),
)
_ARGS: Final[Any] = vars(BaseException)["args"]
_BRANCHES: Final = (list, tuple, dict, set, frozenset)
_DEEPEST: Final = 6
_LARGEST: Final = 65_536
"""The most bytes of one argument or attribute; larger ones are not sent."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception in values that any process can read."""

    facts: Facts
    kinds: tuple[tuple[str, str], ...]
    """Module and qualified name of its class and of its base classes, in order."""
    args: tuple[Any, ...]
    attributes: Mapping[str, Any]


class RemoteError(RuntimeError):
    """Stands for an exception of a child whose class cannot be instantiated here.

    `isinstance` takes it for an instance of that class; only `except` sees the difference.
    """

    kind: type[BaseException]

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - nobody sets it
        return self.__dict__.get("kind", RemoteError)


def describe(error: BaseException) -> Failure:
    """Describe an exception of a handler for the worker."""
    if isinstance(error, StopIteration):  # no future can carry one
        error = RuntimeError("the handler raised StopIteration")
    facts = facts_of(error)
    args: tuple[Any, ...] = _ARGS.__get__(error)
    attributes = BaseException.__getattribute__(error, "__dict__")
    return Failure(
        facts=facts,
        kinds=tuple((one.__module__, one.__qualname__) for one in type(error).__mro__[:-1]),
        args=args if all(map(_is_plain, args)) else (facts.message,),
        attributes={name: value for name, value in attributes.items() if _is_plain(value)},
    )


def rebuild(failure: Failure) -> BaseException:
    """An exception of the same class, or of the nearest class that this process knows."""
    error = _made(failure)
    with suppress(Exception):  # a class of C may keep its own
        _ARGS.__set__(error, failure.args)
    error.__dict__.update(failure.attributes)
    error.__cause__ = RemoteTraceback(failure.facts)
    return error


def _is_plain(value: Any) -> bool:
    """Whether a value is small, and can be pickled without running user code."""
    return _is_tree(value, _DEEPEST) and len(pickle.dumps(value)) <= _LARGEST


def _is_tree(value: Any, depth: int) -> bool:
    if type(value) in _LEAVES:
        return True
    if type(value) is datetime:
        return value.tzinfo is None or type(value.tzinfo) is timezone
    if type(value) not in _BRANCHES or not depth:
        return False
    parts: Iterable[Any] = (*value.keys(), *value.values()) if type(value) is dict else value
    return all(_is_tree(part, depth - 1) for part in parts)


def _made(failure: Failure) -> BaseException:
    kind = _class_of(failure)
    try:
        return _new(kind, failure)
    except Exception:  # noqa: BLE001 - a class of C may refuse in any way
        error = RemoteError(failure.facts.message)
        error.kind = kind
        return error


def _class_of(failure: Failure) -> type[BaseException]:
    """The class by its name; if it is not found, a new one with the same known bases."""
    found = [_find(*name) for name in failure.kinds]
    if found[0] is not None:
        return found[0]
    known = [one for one in found if one is not None]
    bases = [one for one in known if not any(one in other.__mro__[1:] for other in known)]
    try:
        return type(failure.kinds[0][1].rpartition(".")[2], tuple(bases), {})
    except Exception:  # noqa: BLE001 - a user's __init_subclass__ or metaclass may do anything
        return bases[0]


def _find(module: str, qualname: str) -> type[BaseException] | None:
    """A class that this process has loaded; nothing is imported for it."""
    # The program is __main__ here; in a child, its module has another name.
    found: Any = sys.modules.get("__main__" if module == "__mp_main__" else module)
    for name in qualname.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def _new(kind: type[BaseException], failure: Failure) -> BaseException:
    """Create an exception without calling __new__ or __init__ of the user's class."""
    builtin: Any = next(
        one for one in kind.__mro__ if isinstance(one.__dict__.get("__new__"), BuiltinFunctionType)
    )
    if issubclass(kind, BaseExceptionGroup):
        return builtin.__new__(kind, failure.facts.message, [RemoteError("see the traceback")])
    return builtin.__new__(kind)
