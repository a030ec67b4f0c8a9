"""Which tasks a schedule can be for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from faena.errors import ConfigError, nearest, shown
from faena.task import Task

if TYPE_CHECKING:
    from faena.app import Faena


def task_named(app: Faena, text: str) -> Task[Any, Any]:
    """The task of a name such as queue/task."""
    known = {
        f"{queue.name}/{task.name}": task
        for queue in app.queues.values()
        for task in queue.tasks.values()
    }
    if text not in known:
        raise ConfigError(
            f"task must be one of this app's, such as queue/task, got {shown(text)}; "
            f"{nearest(str(text), known)}",
            field="task",
            value=text,
        )
    return known[text]


def refuse_stub(app: Faena, task: Task[Any, Any]) -> None:
    """Refuse a task whose handler is in another program."""
    if app.queues[task.queue].is_remote:
        raise ConfigError(
            f"a schedule must be for a task with a handler in this program, got {shown(task)}: "
            f"declare the schedule where the handler is",
            field="task",
            value=task,
        )
