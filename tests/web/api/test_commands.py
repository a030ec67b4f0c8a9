"""Whatever the command line can do, the API can, or there is a reason why it cannot."""

from __future__ import annotations

from collections.abc import Iterator

import click

from faena.cli.root import roof
from faena.web.operation.declared import OPERATIONS
from faena.web.reading.declared import READINGS

ARCHIVE = ("list", "lower", "restore", "retrieve", "run", "status", "verify")
PARTITIONS = (
    *("attach", "cancel", "convert", "detach", "ensure", "finish", "list", "revert", "status"),
    "swap",
)
ROUTES = {
    "advice": ["advice.list"],
    "alerts list": ["alerts.list"],
    "alerts history": ["alerts.list"],
    "budgets list": ["budgets.list"],
    "budgets report": ["costs.report"],
    "cancel": ["jobs.cancel"],
    "change": ["jobs.change"],
    "dlq discard": ["dead.discard"],
    "dlq groups": ["dead.groups"],
    "dlq list": ["dead.list"],
    "dlq redrive": ["dead.redrive", "dead.stop-redrive"],
    "dlq redrives": ["redrives.list"],
    "dlq resolve": ["dead.resolve"],
    "dlq retry": ["dead.retry"],
    "dlq show": ["dead.show"],
    "dlq stats": ["dead.stats"],
    "doctor": ["doctor"],
    "events": ["events"],
    "explain": ["jobs.explain"],
    "features levels": ["levels.list"],
    "features list": ["features.list"],
    "features show": ["features.show"],
    "flow list": ["flows.list"],
    "flow show": ["flows.show"],
    "groups": ["groups.list", "groups.show"],
    "health": ["health"],
    "job": ["jobs.show", "jobs.result", "jobs.log"],
    "jobs": ["jobs.list"],
    "metrics": ["metrics"],
    "pause": ["queues.pause"],
    "promote": ["jobs.promote"],
    "queues": ["queues.list", "queues.show"],
    "remove": ["jobs.remove"],
    "rerun": ["jobs.rerun"],
    "resume": ["queues.resume"],
    "schedules list": ["schedules.list"],
    "schedules show": ["schedules.show"],
    "shards": ["queues.shards"],
    "shares": ["queues.shares"],
    "stats": ["queues.statistics", "queues.series"],
    "status": ["status"],
    "tasks": ["tasks.list"],
    "tenants show": ["tenants.list", "tenants.show"],
    "tokens list": ["tokens.list"],
    "upstreams list": ["upstreams.list"],
    "upstreams show": ["upstreams.show"],
    "users list": ["users.list"],
    "what-if": ["advice.what-if"],
    "workers": ["workers.list"],
    "alerts silence": ["alerts.silence"],
    "alerts test": ["alerts.test"],
    "alerts unsilence": ["alerts.unsilence"],
    "budgets forget": ["budgets.forget-totals"],
    "clean": ["queues.clean"],
    "configure": ["queues.settings", "queues.configure"],
    "drain": ["queues.drain"],
    "enqueue": ["jobs.enqueue"],
    "features clear": ["features.clear"],
    "features forget": ["features.forget", "levels.forget"],
    "features level": ["levels.on", "levels.off"],
    "features set": ["features.set"],
    "flow cancel": ["flows.cancel"],
    "flow rerun": ["flows.rerun"],
    "obliterate": ["queues.obliterate"],
    "reset": ["queues.reset"],
    "reshard": ["queues.reshard"],
    "retry-failed": ["dead.redrive"],
    "schedules create": ["schedules.create"],
    "schedules edit": ["schedules.edit"],
    "schedules pause": ["schedules.pause"],
    "schedules remove": ["schedules.remove"],
    "schedules reset": ["schedules.reset"],
    "schedules resume": ["schedules.resume"],
    "schedules run": ["schedules.run"],
    "tenants dedicate": ["tenants.dedicate"],
    "tenants hold": ["tenants.hold"],
    "tenants rejoin": ["tenants.rejoin"],
    "tenants release": ["tenants.release"],
    "tenants reset": ["tenants.reset"],
    "tenants set": ["tenants.configure"],
    "tokens add": ["tokens.add"],
    "tokens remove": ["tokens.remove"],
    "upstreams forget": ["upstreams.forget"],
    "upstreams panic": ["upstreams.panic"],
    "upstreams resume": ["upstreams.end-panic"],
    "users add": ["users.add"],
    "users invite": ["users.invite", "users.link"],
    "users password": ["users.password"],
    "users remove": ["users.remove"],
}
"""Command → what the API has for it."""

_RUNS = "it is a process that runs until it is told to stop"
_DATABASE = "it is about a database, which a dashboard has no connection to"
REASONS = {
    **dict.fromkeys(("worker", "dev", "dashboard", "monitor"), _RUNS),
    "completion": "it is about the shell that commands are typed into",
    "audit": "it reads every key of a queue, for minutes: doctor and metrics tell what is wrong",
    **{
        f"pg {one}": _DATABASE
        for one in (
            *("erase", "migrate", "outbox", "publish", "status"),
            *(f"archive {name}" for name in ARCHIVE),
            *(f"history {name}" for name in ("erase", "search", "stats", "status")),
            *(f"partitions {name}" for name in PARTITIONS),
            *(f"rollup {name}" for name in ("backfill", "list", "run", "seal")),
        )
    },
}
"""Command → why the API has nothing for it."""


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        one = group.get_command(context, name)
        if isinstance(one, click.Group):
            yield from commands(one, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_every_command_has_a_route_or_a_reason() -> None:
    known = set(commands(roof))
    assert known == ROUTES.keys() | REASONS.keys()
    assert not ROUTES.keys() & REASONS.keys()


def test_the_table_has_no_route_that_is_gone() -> None:
    names = {one.name for one in (*READINGS, *OPERATIONS)}
    assert {one for told in ROUTES.values() for one in told} <= names


def test_every_route_has_a_path_of_its_own() -> None:
    paths = [(one.method, one.path) for one in (*READINGS, *OPERATIONS)]
    assert len(set(paths)) == len(paths)
