"""Sends messages through faena's codec, and says what it finds wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from apps.campotech.messages import DISPATCHED, MESSAGES
from faena import Faena, Task
from faena.errors import PayloadError
from faena.testing import run_inline

OK = ""


def task_of(app: Faena, queue: str, kind: Any) -> Task[Any, Any]:
    """A task that returns what its handler was given."""

    async def receive(message: Any) -> Any:
        return message

    receive.__annotations__ = {"message": kind, "return": kind}
    return app.queue(queue).task(receive)


_app = Faena("judge")
_TASKS = {name: task_of(_app, name, kind) for name, kind in MESSAGES.items()}
_DISPATCHED = {
    name: task_of(_app, name.replace(":", "-"), kind) for name, kind in DISPATCHED.items()
}


async def judged(name: str, payload: dict[str, Any]) -> str:
    """What is wrong with a payload, as faena's error says it; "" if it is valid.

    A producer of another program sends JSON: the handler's side must judge that in the same way.
    """
    try:
        await run_inline({**_TASKS, **_DISPATCHED}[name], payload)
    except PayloadError as error:
        verdict = "; ".join(f"{path} {reason}" for path, reason in error.fields)
    else:
        verdict = OK
    _check_json({**MESSAGES, **DISPATCHED}[name], payload, is_valid=verdict == OK)
    return verdict


def _check_json(kind: Any, payload: dict[str, Any], *, is_valid: bool) -> None:
    raw = _as_json(payload)
    if raw is None:
        return
    adapter = TypeAdapter[Any](kind)
    if is_valid:
        assert adapter.validate_json(raw) == adapter.validate_python(payload)
    else:
        with pytest.raises(ValidationError):
            adapter.validate_json(raw)


def _as_json(payload: dict[str, Any]) -> bytes | None:
    """None for values that only Python has."""
    try:
        text = json.dumps(payload, allow_nan=False)
        return text.encode() if json.loads(text) == payload else None
    except (TypeError, ValueError, RecursionError):
        return None
