"""Reads a handler's signature: its payload type, the position of the job, its return type.

A plain handler takes a payload, the job, both in either order, or neither. A batch handler takes a
list of payloads, and optionally a list of their jobs after it. It returns a list with a result or
an exception for each, or None.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, NoReturn, Union

from faena.errors import ConfigError
from faena.job import Job

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_TAKEN = (list, Sequence, Collection, Iterable)
_RETURNED = (list, tuple, Sequence)


class Signature(NamedTuple):
    """How to call a function, for one job or for a batch."""

    payload: Any
    """The type of one payload."""
    result: Any
    """The type of one result."""
    payload_at: int
    """Position of the payload, or the list of them, among the arguments; -1 for none."""
    job_at: int
    """Position of the job, or the list of them; -1 for none."""


def read_plain(function: Callable[..., Any], task: str, names: Mapping[str, Any]) -> Signature:
    """Read a handler for one job; `names` helps to resolve annotations of local classes."""
    hints = _hints(function, names)
    at = {True: -1, False: -1}
    payload: Any = None
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        is_job = hints.get(parameter.name) is Job or _is_bare(parameter, "job", hints)
        if parameter.kind not in _POSITIONAL or at[is_job] >= 0:
            _refuse(function, task, "a payload, a job, both or none", f"a parameter {parameter}")
        at[is_job] = position
        if not is_job:
            payload = hints.get(parameter.name, Any)
    return Signature(payload, hints.get("return", Any), at[False], at[True])


def read_batch(function: Callable[..., Any], task: str, names: Mapping[str, Any]) -> Signature:
    """Read a batch handler."""
    hints, wanted = _hints(function, names), "a list of payloads, and may take a list of their jobs"
    parameters = list(inspect.signature(function).parameters.values())
    for position, parameter in enumerate(parameters):
        is_jobs = _element(hints.get(parameter.name), _TAKEN) is Job
        is_jobs = is_jobs or _is_bare(parameter, "jobs", hints)
        if parameter.kind not in _POSITIONAL or position > 1 or is_jobs != (position == 1):
            _refuse(function, task, wanted, f"a parameter {parameter}")
    if not parameters:
        _refuse(function, task, wanted, "no parameter")
    payload = _element(hints.get(parameters[0].name, Any), _TAKEN)
    if payload is None:
        _refuse(function, task, wanted, f"a parameter {parameters[0]}")
    result = _entry(function, task, hints.get("return", Any))
    return Signature(payload, result, 0, len(parameters) - 1 or -1)


def _entry(function: Callable[..., Any], task: str, hint: Any) -> Any:
    """The type of one result: the type of an entry without exceptions."""
    elements = [_element(one, _RETURNED) for one in choices(hint) if one is not NoneType]
    if None in elements:
        raise ConfigError(
            f"handler of batch task {task} must return a list with an entry for each payload, "
            f"or None, got {hint}",
            field="task",
            value=str(inspect.signature(function)),
        )
    entries = [one for each in elements for one in choices(each) if not _is_exception(one)]
    return Union[tuple(entries)] if entries else NoneType  # noqa: UP007 - of a list made here


def choices(hint: Any) -> Sequence[Any]:
    """The members of a union, or the hint alone."""
    while typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    if hint is None:
        return (NoneType,)
    is_union = typing.get_origin(hint) in {Union, UnionType}
    return typing.get_args(hint) if is_union else (hint,)


def _element(hint: Any, kinds: Collection[type]) -> Any:
    """The element type of a list; None if the hint is not a list."""
    if hint is Any or hint in kinds:
        return Any
    if typing.get_origin(hint) not in kinds:
        return None
    return typing.get_args(hint)[0]


def _is_exception(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, BaseException)


def _is_bare(parameter: inspect.Parameter, name: str, hints: Mapping[str, Any]) -> bool:
    """Whether the parameter has this name and no annotation."""
    return parameter.name == name and name not in hints


def _refuse(function: Callable[..., Any], task: str, wanted: str, got: str) -> NoReturn:
    raise ConfigError(
        f"handler of task {task} must take {wanted}, got {got}",
        field="task",
        value=str(inspect.signature(function)),
    )


def _hints(function: Callable[..., Any], names: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError:
        pass
    try:
        return typing.get_type_hints(function, localns=dict(names), include_extras=True)
    except NameError as error:
        raise ConfigError(
            f"annotations of handler {function.__name__} must be defined names: {error}",
            field="task",
        ) from None
