"""What can be done to a flow."""

from __future__ import annotations

from typing import Any, Final

from faena.errors import ConfigError, InvalidTransition
from faena.flows import Flow
from faena.web.access.role import Permission
from faena.web.answer import not_found
from faena.web.operation.operation import Asked, Done, Operation
from faena.web.operation.queue import queue_of


def _flow(asked: Asked) -> Flow:
    queue = queue_of(asked)
    try:
        return asked.app.running_flow(f"{queue.name}/{asked.where['flow']}")
    except ConfigError:
        raise not_found("flow") from None


async def _state(flow: Flow) -> dict[str, Any]:
    view = await flow.view(has_nodes=False)
    return {"state": view.state, "left": view.left, "total": view.total}


async def _cancel(asked: Asked) -> Done:
    flow = _flow(asked)
    before = await _state(flow)
    await _as_flow(flow.cancel(by=asked.by))
    after = await _state(flow)
    return Done(after, before, after)


async def _rerun(asked: Asked) -> Done:
    flow = _flow(asked)
    before = await _state(flow)
    await _as_flow(flow.rerun(by=asked.by))
    after = await _state(flow)
    return Done(after, before, after)


async def _as_flow(doing: Any) -> None:
    """Errors of transitions name the flow, not the jobs of it."""
    try:
        await doing
    except InvalidTransition as error:
        raise InvalidTransition(str(error), op="flow") from error


OPERATIONS: Final = (
    Operation(
        name="flows.cancel",
        path="/queues/{queue}/flows/{flow}/cancel",
        needs=Permission.OPERATE,
        text="Cancel a flow: jobs that wait or run, and nodes that are not enqueued yet.",
        do=_cancel,
        told="Flow {flow} is cancelled",
    ),
    Operation(
        name="flows.rerun",
        path="/queues/{queue}/flows/{flow}/rerun",
        needs=Permission.OPERATE,
        text="Run a failed or cancelled flow again: nodes that did not complete get new jobs.",
        do=_rerun,
        told="Flow {flow} runs again",
    ),
)
