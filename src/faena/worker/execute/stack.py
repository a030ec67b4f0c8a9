"""Formats tracebacks with the user's own frames only.

Frames of faena and of asyncio are left out, except the one that raised. Tracebacks never contain
the values of variables.
"""

from __future__ import annotations

import traceback
from asyncio import tasks
from pathlib import Path
from typing import Final

_READ: Final = 200
"""The most innermost frames that are read: an endless recursion has thousands."""
_KEPT: Final = 12

_EXECUTOR: Final = str(Path(__file__).with_name("executor.py"))
_HIDDEN: Final = (f"{Path(__file__).parents[2]}/", f"{Path(tasks.__file__).parent}/")


def stack_of(error: BaseException) -> str | None:
    """The traceback of an exception and of its causes; None when it was not raised."""
    if error.__traceback__ is None or _is_returned(error):
        return None
    try:
        told = traceback.TracebackException.from_exception(error, limit=-_READ)
        _trim(told, depth=0)
        return "".join(told.format())
    except Exception:  # noqa: BLE001 - formatting asks the user's __str__
        return "".join(traceback.format_tb(error.__traceback__, limit=-_KEPT))


def _is_returned(error: BaseException) -> bool:
    """Whether a batch handler returned it: then it was raised where the executor waits for it."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    code = frame.f_code
    return code.co_name == "_call" and code.co_filename == _EXECUTOR and error.__cause__ is None


def _trim(told: traceback.TracebackException, depth: int) -> None:
    kept = [one for one in told.stack[:-1] if not one.filename.startswith(_HIDDEN)]
    told.stack[:] = [*kept, *told.stack[-1:]][-_KEPT:]
    if depth < _KEPT:
        for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
            if other is not None:
                _trim(other, depth + 1)
