"""Portuguese: each page's sentences in a module of its own."""

from __future__ import annotations

from typing import Final

from faena.web.words.pt.access import ACCESS
from faena.web.words.pt.alert import ALERT
from faena.web.words.pt.audit import AUDIT
from faena.web.words.pt.bulk import BULK
from faena.web.words.pt.capacity import CAPACITY
from faena.web.words.pt.common import COMMON
from faena.web.words.pt.cost import COST
from faena.web.words.pt.dead import DEAD
from faena.web.words.pt.door import DOOR
from faena.web.words.pt.flow import FLOW
from faena.web.words.pt.frame import FRAME
from faena.web.words.pt.job import JOB
from faena.web.words.pt.overview import OVERVIEW
from faena.web.words.pt.queue import QUEUE
from faena.web.words.pt.run import RUN
from faena.web.words.pt.schedule import SCHEDULE
from faena.web.words.pt.search import SEARCH
from faena.web.words.pt.shell import SHELL
from faena.web.words.pt.tenant import TENANT
from faena.web.words.pt.upstream import UPSTREAM
from faena.web.words.pt.worker import WORKER

PT: Final[dict[str, str]] = {
    **RUN,
    **COMMON,
    **SHELL,
    **DOOR,
    **OVERVIEW,
    **QUEUE,
    **JOB,
    **DEAD,
    **AUDIT,
    **FRAME,
    **UPSTREAM,
    **WORKER,
    **ACCESS,
    **SCHEDULE,
    **TENANT,
    **FLOW,
    **SEARCH,
    **BULK,
    **CAPACITY,
    **ALERT,
    **COST,
}
