"""The arguments of a task's hooks, `@task.on_dead` and `@task.on_failure`.

The server writes them in the call that ends the attempt. The payload stays with the job, and is
read on request.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from faena.codec import Codec, codec_for
from faena.declaring.handler import Handler
from faena.declaring.signature import choices, read_plain
from faena.errors import ConfigError, InternalError, JobNotFound, shown
from faena.outcomes import ErrorRecord
from faena.producing.handle import Handle
from faena.tenancy.lanes import lane_of

if TYPE_CHECKING:
    from faena.app import Faena

ENDS: Final = ("dead", "failed")


class Failure(msgspec.Struct, kw_only=True, omit_defaults=True, dict=True):
    """A job that has failed an attempt."""

    job_id: str
    task: str
    tenant: str | None = None
    key: str | None = None
    attempts_made: int = 0
    """Attempts used so far, this one included."""
    losses: int = 0
    """Deliveries lost with their worker."""
    at: int = 0
    """When, in the server's microseconds."""
    error: ErrorRecord | None = None
    queue: str = ""

    @property
    def handle(self) -> Handle[Any]:
        """The handle of the job."""
        lane = lane_of(self.tenant)
        return Handle(self._app, self.queue, self.job_id, codec_for(Any), lane)

    async def payload(self) -> Any:
        """The decoded payload of the job, as its handler gets it.

        Raises JobNotFound if retention has removed the job, and PayloadError if the payload cannot
        be read.
        """
        view = await self.handle.view()
        if view is None:
            raise JobNotFound(f"no job {self.job_id} in queue {self.queue}", op="payload")
        task = self._app.queues[self.queue].tasks.get(self.task)
        codec = task.handler.payload if task else None
        return (codec or codec_for(Any)).decode(view.payload)

    def bind(self, app: Faena, queue: str) -> None:
        """Set the app and the queue of the job."""
        self.queue = queue
        vars(self)["app"] = app

    @property
    def _app(self) -> Faena:
        app = vars(self).get("app")
        if app is None:
            raise InternalError(f"{type(self).__name__} of job {self.job_id} belongs to no app")
        return app


class Death(Failure):
    """A job that has died."""


_KINDS: Final[Mapping[str, type[Failure]]] = {"dead": Death, "failed": Failure}


class _Codec(Codec[Any]):
    """Binds the decoded value to its app."""

    def __init__(self, inner: Codec[Any], app: Faena, queue: str) -> None:
        self._inner = inner
        self._app = app
        self._queue = queue

    def encode(self, value: Any) -> bytes:
        return self._inner.encode(value)

    def decode(self, raw: bytes | msgspec.Raw) -> Any:
        told = self._inner.decode(raw)
        told.bind(self._app, self._queue)
        return told


def word_of(end: str) -> str:
    """The name of a hook's decorator."""
    return "on_failure" if end == "failed" else "on_dead"


def check_hook(end: str, task: str, function: Callable[..., Any], names: Mapping[str, Any]) -> None:
    """Refuse a task, or a function with other parameters, as a hook."""
    word = word_of(end)
    if not inspect.isroutine(function):
        raise ConfigError(
            f"a hook must be a function, got {shown(function)}; write only @{task}.{word} above "
            f"it: it makes the function a task, so remove @queue.task",
            field="task",
            value=function,
        )
    kind, hint = _KINDS[end], read_plain(function, f"{task}.{word}", names).payload
    takes = [one for one in choices(hint) if one is Any or one in kind.__mro__]
    if hint is not None and not takes:
        raise ConfigError(
            f"hook {function.__name__} must take a {kind.__name__}, a Job, both or none, "
            f"got {shown(hint)}",
            field="task",
            value=hint,
        )


def as_hook(handler: Handler, end: str, app: Faena) -> Handler:
    """Give the handler of a hook a Death or a Failure, also without an annotation."""
    if handler.payload is None:
        return handler
    return replace(handler, payload=_Codec(codec_for(_KINDS[end]), app, handler.queue))
