"""`@app.daily_cost_report`: a coroutine function that gets yesterday's costs every day."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from faena.declaring.handler import refuse_bare
from faena.declaring.signature import choices
from faena.errors import ConfigError, shown
from faena.job import Job
from faena.resilience.costs import CostReport, yesterday
from faena.scheduling.decorators import Recurring, RecurringFields
from faena.scheduling.recurrence import check_zone
from faena.task import Task

if TYPE_CHECKING:
    from faena.app import Faena
    from faena.queue import Queue

_TAKEN: Final = (CostReport, object, Any)
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


class DailyCosts:
    """The decorator."""

    def __init__(self, app: Faena, *, at: Any, timezone: Any, queue: Queue | str | None) -> None:
        refuse_bare('@app.daily_cost_report(at="08:00")', at)
        match = _TIME.fullmatch(at) if isinstance(at, str) else None
        if match is None:
            raise ConfigError(
                f"at must be a time of day such as '08:00', got {shown(at)}", field="at", value=at
            )
        try:
            check_zone(timezone)
        except ConfigError as error:
            words = str(error).replace("tz must", "timezone must", 1)
            raise ConfigError(words, field="timezone", value=timezone) from None
        self._app = app
        options: RecurringFields = {"tz": timezone}
        if queue is not None:
            options["queue"] = queue
        cron = f"{int(match[2])} {int(match[1])} * * *"
        self._recurring = Recurring(app, {"cron": cron}, options)

    def __call__(self, function: Callable[[CostReport], Awaitable[object]], /) -> Task[None, None]:
        """Make it a task with a schedule."""
        _check(function)
        app = self._app

        async def report(job: Job) -> None:
            day = yesterday(job.instant or datetime.now(UTC))
            await function(await app.cost_report(day=day))

        report.__name__, report.__qualname__ = function.__name__, function.__qualname__
        report.__doc__ = function.__doc__
        return self._recurring(report)


def _check(function: Any) -> None:
    is_fit = inspect.iscoroutinefunction(function)
    try:
        if is_fit:
            inspect.signature(function).bind(None)
            is_fit = _takes_report(function)
    except TypeError:
        is_fit = False
    if not is_fit:
        raise ConfigError(
            f"a daily cost report must be an async function that takes a CostReport, "
            f"got {shown(function)}",
            field="daily_cost_report",
            value=function,
        )


def _takes_report(function: Any) -> bool:
    """Whether its parameter may be a CostReport: one without a type may, and one whose type is
    not to be found here."""
    first = next(iter(inspect.signature(function).parameters))
    try:
        hint = typing.get_type_hints(function).get(first, Any)
    except NameError:
        return True
    return hint is Any or any(one in _TAKEN for one in choices(hint))
