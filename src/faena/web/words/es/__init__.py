"""Spanish: each page's sentences in a module of its own."""

from __future__ import annotations

from typing import Final

from faena.web.words.es.access import ACCESS
from faena.web.words.es.alert import ALERT
from faena.web.words.es.audit import AUDIT
from faena.web.words.es.bulk import BULK
from faena.web.words.es.capacity import CAPACITY
from faena.web.words.es.common import COMMON
from faena.web.words.es.cost import COST
from faena.web.words.es.dead import DEAD
from faena.web.words.es.door import DOOR
from faena.web.words.es.flow import FLOW
from faena.web.words.es.frame import FRAME
from faena.web.words.es.job import JOB
from faena.web.words.es.overview import OVERVIEW
from faena.web.words.es.queue import QUEUE
from faena.web.words.es.run import RUN
from faena.web.words.es.schedule import SCHEDULE
from faena.web.words.es.search import SEARCH
from faena.web.words.es.shell import SHELL
from faena.web.words.es.tenant import TENANT
from faena.web.words.es.upstream import UPSTREAM
from faena.web.words.es.worker import WORKER

ES: Final[dict[str, str]] = {
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
