# size: a line for each part of a page
"""Writes the reference pages out of the code: `./dev reference`.

What a field means stands at the field, what a command does in its help; the pages only arrange it.
A test compares them with what this module would write, so that none can fall behind the code.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import click

from faena import errors, outcomes
from faena.cli.root import roof
from faena.states import State
from faena.values import names
from tests._support import reference_metrics, transitions

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs" / "reference"
_NOTE: Final = (
    "<!-- Written by `./dev reference` out of the code: change the code, then run it. -->"
)


class Part(NamedTuple):
    """One class or function of a page."""

    title: str
    path: str
    """`module:name`, or `module:Class.method`."""
    use: str
    """Where a program writes it."""


OPTIONS: Final = (
    Part("App", "faena.app:Faena.__init__", "`Faena(name, …)`"),
    Part("Queue", "faena.options.queue:QueueOptions", "`app.queue(name, …)`"),
    Part("Task", "faena.options.task:TaskOptions", "`@queue.task(…)`"),
    Part("Batch", "faena.options.batch:BatchOptions", "`@queue.batch(…)`: those of a task, and"),
    Part("Enqueue", "faena.options.enqueue:EnqueueOptions", "`task.enqueue(payload, …)`"),
    Part("Limit", "faena.limits:Limit", "`limits=[Limit(…)]`"),
    Part("Retry", "faena.retry:Retry", "`retry=Retry.exponential(…)`"),
    Part("Retry.exponential", "faena.retry:Retry.exponential", "`Retry.exponential(…)`"),
    Part("Retry.fixed", "faena.retry:Retry.fixed", "`Retry.fixed(…)`"),
    Part("Retry.steps", "faena.retry:Retry.steps", "`Retry.steps(…)`"),
    Part("Retry.custom", "faena.retry:Retry.custom", "`Retry.custom(…)`"),
    Part(
        "Upstream", "faena.resilience.upstream_options:UpstreamOptions", "`app.upstream(name, …)`"
    ),
    Part("Breaker", "faena.resilience.breaker:Breaker", "`breaker=Breaker(…)` of an upstream"),
    Part("Feature", "faena.resilience.feature:FeatureOptions", "`app.feature(name, …)`"),
    Part(
        "Health check",
        "faena.resilience.health_check:HealthCheckOptions",
        "`@app.health_check(feature, …)`",
    ),
    Part("Backpressure", "faena.options.backpressure:Backpressure", "`backpressure=…`"),
    Part("Retain", "faena.options.retain:Retain", "`retain=…`"),
    Part("Unique", "faena.options.unique:Unique", "`unique=…` of an enqueue call"),
    Part("Durability", "faena.options.durability:Durability", "`durability=…` of an enqueue call"),
    Part(
        "Schedule", "faena.scheduling.decorators:ScheduleFields", "`@app.cron(…)`, `@app.every(…)`"
    ),
    Part("Pool", "faena.pool:Pool", "`app.pool(name, queues, …)`"),
    Part("Worker", "faena.worker.options:WorkerOptions", "`app.run_worker(…)`"),
    Part("Dead letters", "faena.options.dead_letters:DeadLetters", "`Faena(dead_letters=…)`"),
    Part("Metrics", "faena.options.metrics:Metrics", "`Faena(metrics=…)`"),
    Part("Alerts", "faena.options.alerts:Alerts", "`Faena(alerts=Alerts(…))`"),
    Part("Rule", "faena.options.alerts:Rule", "`Alerts(rules={name: Rule(…)})`"),
    Part("Thresholds", "faena.options.thresholds:Thresholds", "`alerts=Thresholds(…)` of a queue"),
    Part("Log", "faena.options.channels:Log", "`Alerts(channels=[Log()])`"),
    Part("Webhook", "faena.options.channels:Webhook", "`Alerts(channels=[Webhook(…)])`"),
    Part("Chat", "faena.options.channels:Chat", "`Alerts(channels=[Chat(…)])`"),
    Part("Mail", "faena.options.channels:Mail", "`Alerts(channels=[Mail(…)])`"),
    Part("Postgres", "faena.pg.postgres:Postgres.__init__", "`Postgres(app, …)`"),
    Part("History", "faena.pg.history.option:History", "`Postgres(app, history=History(…))`"),
    Part("Archive", "faena.pg.archive.policy:Archive", "`pg.retain(table, then=Archive(…))`"),
)

VALUES: Final = (
    Part("Job", "faena.job:Job", "what a handler gets"),
    Part("JobView", "faena.job:JobView", "`await handle.view()`, `queue.jobs(…)`"),
    Part("Page", "faena.inspection.inspector:Page", "`await queue.jobs(…)`"),
    Part("Explanation", "faena.inspection.explanation:Explanation", "`await handle.explain()`"),
    Part("Reason", "faena.inspection.reason:Reason", "`Explanation.reasons`"),
    Part("ExpectedStart", "faena.inspection.start:ExpectedStart", "`Explanation.expected_start`"),
    Part("Gate", "faena.inspection.gate:Gate", "`Explanation.gates`, `TenantView.gates`"),
    Part("Overview", "faena.engine.overview:Overview", "`await queue.overview()`"),
    Part("Settings", "faena.options.settings:Settings", "`await queue.settings()`"),
    Part("ShardsView", "faena.sharding.view:ShardsView", "`await queue.shards()`"),
    Part("Shares", "faena.tenancy.shares:Shares", "`await queue.shares()`"),
    Part("Receipt", "faena.producing.receipt:Receipt", "`await task.enqueue(…)`"),
    Part("ErrorRecord", "faena.outcomes:ErrorRecord", "`JobView.errors`"),
    Part(
        "Failure",
        "faena.declaring.hooks:Failure",
        "what hooks get: `@task.on_failure`, `@task.on_dead`",
    ),
    Part("Event", "faena.telemetry.events:Event", "`async for event in app.events()`"),
    Part("AlertsView", "faena.telemetry.alerts.view:AlertsView", "`await app.alerts()`"),
    Part("AlertView", "faena.telemetry.alerts.view:AlertView", "`AlertsView.firing`, `.pending`"),
    Part("SilenceView", "faena.telemetry.alerts.view:SilenceView", "`await app.silence(…)`"),
    Part("AlertChange", "faena.telemetry.alerts.view:AlertChange", "`AlertsView.history`"),
    Part("Health", "faena.telemetry.health:Health", "`await app.health()`"),
    Part("QueueHealth", "faena.telemetry.health:QueueHealth", "`Health.queues`"),
    Part("Exposition", "faena.telemetry.metrics.exposition:Exposition", "`await app.metrics()`"),
    Part("QueueStatistics", "faena.telemetry.statistics:QueueStatistics", "`queue.statistics(…)`"),
    Part("TaskStatistics", "faena.telemetry.statistics:TaskStatistics", "`QueueStatistics.tasks`"),
    Part("Series", "faena.telemetry.statistics:Series", "`await queue.series(…)`"),
    Part("Timing", "faena.telemetry.statistics:Timing", "`TaskStatistics.wait`"),
    Part("QueueAdvice", "faena.telemetry.advice.queue_advice:QueueAdvice", "`await app.advice(…)`"),
    Part("TaskAdvice", "faena.telemetry.advice.queue_advice:TaskAdvice", "`QueueAdvice.tasks`"),
    Part("WhatIf", "faena.telemetry.advice.replay:WhatIf", "`await app.what_if(…)`"),
    Part("Replay", "faena.telemetry.advice.replay:Replay", "`WhatIf.before`, `WhatIf.after`"),
    Part("Scaling", "faena.telemetry.advice.scaling:Scaling", "`await app.scaling()`"),
    Part("QueueScaling", "faena.telemetry.advice.scaling:QueueScaling", "`Scaling.queues`"),
    Part("UpstreamView", "faena.engine.calls.upstreams:UpstreamView", "`await upstream.view()`"),
    Part("Panic", "faena.engine.calls.upstreams:Panic", "`UpstreamView.panic`"),
    Part("LimitUse", "faena.engine.calls.upstreams:LimitUse", "`UpstreamView.limits`"),
    Part("TroubledTenant", "faena.engine.calls.upstreams:TroubledTenant", "`UpstreamView.tenants`"),
    Part("BudgetView", "faena.engine.calls.budget_view:BudgetView", "`await app.budget_views()`"),
    Part("CostReport", "faena.resilience.costs:CostReport", "`await app.cost_report()`"),
    Part("ServiceCost", "faena.resilience.costs:ServiceCost", "`CostReport.services`"),
    Part("TaskCost", "faena.resilience.costs:TaskCost", "`ServiceCost.tasks`"),
    Part("TenantCost", "faena.resilience.costs:TenantCost", "`ServiceCost.top_tenants`"),
    Part("DayCost", "faena.resilience.costs:DayCost", "`CostReport.days`"),
    Part("FeaturesView", "faena.resilience.feature_views:FeaturesView", "`await app.features()`"),
    Part("FeatureView", "faena.resilience.feature_views:FeatureView", "`await feature.view()`"),
    Part("FeatureSource", "faena.resilience.feature_views:FeatureSource", "`FeatureView.sources`"),
    Part("LevelView", "faena.resilience.feature_views:LevelView", "`FeaturesView.levels`"),
    Part("TenantView", "faena.tenancy.tenants:TenantView", "`await queue.tenants()`"),
    Part("ScheduleView", "faena.scheduling.view:ScheduleView", "`await app.schedules.list()`"),
    Part("DeadLetter", "faena.deadletter.views:DeadLetter", "`await app.dead_letters.get(…)`"),
    Part("DeadPage", "faena.deadletter.views:DeadPage", "`await app.dead_letters.list()`"),
    Part("DeadGroup", "faena.deadletter.views:DeadGroup", "`await app.dead_letters.groups()`"),
    Part("DeadStats", "faena.deadletter.views:DeadStats", "`await app.dead_letters.stats()`"),
    Part("Dealt", "faena.deadletter.views:Dealt", "`await app.dead_letters.retry_many_as_new(…)`"),
    Part("FlowView", "faena.flows.flow:FlowView", "`await flow.view()`"),
    Part("NodeView", "faena.flows.flow:NodeView", "`FlowView.nodes`"),
    Part("GroupView", "faena.flows.group:GroupView", "`await group.view()`"),
    Part("Finding", "faena.inspection.doctor:Finding", "`await app.doctor()`"),
    Part(
        "RedriveView", "faena.deadletter.redrive_view:RedriveView", "`app.dead_letters.redrives()`"
    ),
)

VARIABLES: Final[Mapping[str, str]] = {
    "FAENA_ENV": "`production` refuses the embedded Valkey",
    "FAENA_BY": "who decides, for commands that are not told `--by`",
    "ENABLE_DLQ_AUTO_RETRY": "true or false: whether dead jobs are retried automatically",
    "FAENA_ALERTS": "before `_<CHANNEL>_URL`, `_SECRET` or `_PASSWORD`: secrets of a channel",
    "LOG_LEVEL": "of `faena worker`",
    "LOG_FORMAT": "of `faena worker`",
    "FAENA_APP": "MODULE:APP of every command that is given none",
    "FAENA_URL": "the broker's URL, unless code gives one",
    "FAENA_PG_URL": "the URL of the PostgreSQL, unless code gives one",
    "FAENA_PG_DIRECT_URL": "the same past PgBouncer, for what needs a session",
    "FAENA_PG_REPLICA_URL": "a replica that `pg.reading()` uses while it is fresh enough",
    "FAENA_ARCHIVE_URL": "where archives are, unless code says: a path, or s3://bucket/prefix",
    "FAENA_ARCHIVE_ENDPOINT": "the address of a service that speaks S3 and is not AWS",
    "FAENA_ARCHIVE_SECRET": "what signs links to retrieved archives; several with commas between",
    "REDIS_URL": "the same as FAENA_URL, where that is not set",
    "REDIS_HOST": "the broker's host, where no URL is set; with REDIS_PORT and REDIS_PASSWORD",
    "REDIS_PORT": "1 to 65535; 6379 by default",
    "REDIS_PASSWORD": "never shown",
    "REDIS_TLS": "whether that connection uses TLS",
    "FAENA_SERVE": "where a worker answers /health, /ready and /metrics: a port, host:port or off",
    "WORKER_POOL": "the pool that `faena worker` runs",
    "WORKER_ID": "the worker's name in leases, logs and the dead-letter desk",
    "WORKER_CONCURRENCY": "jobs of all queues together at a time",
    "WORKER_RATE_LIMIT_MAX": "claims one process may make in WORKER_RATE_LIMIT_DURATION",
    "WORKER_RATE_LIMIT_DURATION": "milliseconds; 60000 by default",
}
_PRIVATE: Final = {"FAENA_LIFELINE", "FAENA_LIFELINE_PATIENT", "FAENA_REPORTS"}
_VARIABLE: Final = re.compile(r"[\"']((?:FAENA|REDIS|WORKER|ENABLE|LOG)_[A-Z_]+)[\"']")
_NO_VARIABLES: Final = re.compile(r"WORKER_LOST|WORKER_DIED")


# -- reading the code -----------------------------------------------------------------------------


class Field(NamedTuple):
    """A field of a class or a parameter of a function."""

    name: str
    kind: str
    default: str
    meaning: str


def node_of(path: str) -> ast.ClassDef | ast.FunctionDef:
    """The definition of what a path names; of overloads the last, which has the body."""
    module, _, names = path.partition(":")
    source = inspect.getsource(importlib.import_module(module))
    body: Iterable[ast.stmt] = ast.parse(source).body
    found: ast.ClassDef | ast.FunctionDef | None = None
    for name in names.split("."):
        nodes = [one for one in body if getattr(one, "name", None) == name]
        assert nodes, f"{path} leads nowhere"
        found = nodes[-1]  # type: ignore[assignment]
        body = found.body  # type: ignore[union-attr]
    assert found is not None
    return found


def fields_of(node: ast.ClassDef | ast.FunctionDef) -> list[Field]:
    """Public fields with the docstrings below them, or the parameters of a function."""
    if isinstance(node, ast.FunctionDef):
        return list(_parameters(node))
    may_lack = any(one.arg == "total" for one in node.keywords)  # total=False: none is required
    declared = [one._replace(default="") if may_lack else one for one in _declared(node.body)]
    return [*declared, *_assigned(node), *_properties(node)]


def _declared(body: list[ast.stmt]) -> Iterator[Field]:
    for at, one in enumerate(body):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            name, value = one.target.id, one.value
            if not name.startswith("_") and "init=False" not in (
                ast.unparse(value) if value else ""
            ):
                yield Field(name, ast.unparse(one.annotation), _default(value), _below(body, at))


def _assigned(node: ast.ClassDef) -> Iterator[Field]:
    """What `__init__` sets and explains: `self.attempt = attempt` with a docstring below."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            for at, one in enumerate(method.body):
                target = (
                    one.targets[0] if isinstance(one, ast.Assign) else getattr(one, "target", None)
                )
                if isinstance(target, ast.Attribute) and not target.attr.startswith("_"):
                    kind = ast.unparse(one.annotation) if isinstance(one, ast.AnnAssign) else ""
                    yield Field(target.attr, kind, "", _below(method.body, at))


def _properties(node: ast.ClassDef) -> Iterator[Field]:
    for one in node.body:
        is_property = isinstance(one, ast.FunctionDef) and any(
            ast.unparse(decorator) == "property" for decorator in one.decorator_list
        )
        if is_property and not one.name.startswith("_"):
            kind = ast.unparse(one.returns) if one.returns else ""
            yield Field(one.name, kind, "", ast.get_docstring(one) or "")


def _parameters(node: ast.FunctionDef) -> Iterator[Field]:
    args = node.args
    positional = [one for one in args.args if one.arg not in {"self", "cls"}]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
    pairs = [*zip(positional, [*defaults, *args.defaults], strict=True)]
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    for one, default in pairs:
        yield Field(
            one.arg, ast.unparse(one.annotation) if one.annotation else "", _default(default), ""
        )


def _below(body: list[ast.stmt], at: int) -> str:
    """The docstring after a statement, or after the last of several that share one."""
    following = body[at + 1] if at + 1 < len(body) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return inspect.cleandoc(str(following.value.value))
    return ""


def _default(value: ast.expr | None) -> str:
    if value is None:
        return "required"
    if not isinstance(value, ast.Call) or ast.unparse(value.func) != "field":
        return ast.unparse(value)
    given = {one.arg: ast.unparse(one.value) for one in value.keywords}
    made = given.get("default_factory", "")
    if made.startswith("lambda: "):
        return made.removeprefix("lambda: ")
    return f"{made.partition('[')[0]}()" if made else given.get("default", "")


# -- writing pages --------------------------------------------------------------------------------


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(text)}`" if text else ""


def _section(part: Part, *, is_option: bool) -> str:
    node = node_of(part.path)
    lines = [f"## {part.title}", "", f"{part.use}", ""]
    charter = ast.get_docstring(node)
    if charter:
        lines += [charter, ""]
    columns = ["name", "type", *(["default"] if is_option else [])]
    columns += ["meaning"] if isinstance(node, ast.ClassDef) else []  # else the charter says it
    rows = [
        [_code(one.name), _code(one.kind), _code(one.default), _cell(one.meaning)]
        for one in fields_of(node)
        if is_option or one.meaning or one.kind
    ]
    wanted = [
        at for at, name in enumerate(["name", "type", "default", "meaning"]) if name in columns
    ]
    return "\n".join([*lines, *_table(columns, [[row[at] for at in wanted] for row in rows])])


def _table(columns: list[str], rows: Iterable[list[str]]) -> list[str]:
    head = f"| {' | '.join(columns)} |"
    return [head, "|---" * len(columns) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def options_page() -> str:
    """Everything that can be said to an app, a queue, a task, a call or a worker."""
    intro = "Durations are a `timedelta` or a string: `500ms`, `90s`, `5m`, `24h`, `7d`, `1h30m`."
    return _page("Options", intro, *(_section(part, is_option=True) for part in OPTIONS))


def values_page() -> str:
    """Everything that a program is given."""
    intro = (
        "What calls return and handlers get. Instants are the server's: datetimes, or microseconds."
    )
    return _page("Values", intro, *(_section(part, is_option=False) for part in VALUES))


def errors_page() -> str:
    """The tree of errors, each with what it means."""
    tree = inspect.cleandoc(errors.__doc__ or "").split("\n\n")[1]
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.FaenaError)
    ]
    signals = [
        kind
        for kind in vars(outcomes).values()
        if isinstance(kind, type) and issubclass(kind, outcomes.Signal)
        if kind is not outcomes.Signal
    ]
    return _page(
        "Errors",
        "All of them are in `faena.errors`.",
        f"```text\n{inspect.cleandoc(tree)}\n```",
        _exceptions("error", kinds),
        "## Signals\n\n"
        "These are not part of the tree above: `from faena import UpstreamUnavailable`. A handler "
        "raises `Snooze`, `Discard` or `RateLimited` to choose its outcome. A call to an upstream "
        "that is not permitted raises `UpstreamUnavailable`; a program catches it outside of jobs.",
        _exceptions("signal", signals),
    )


def _exceptions(what: str, kinds: Iterable[type]) -> str:
    rows = [
        [_code(kind.__name__), _code(kind.__bases__[0].__name__), _cell(kind.__doc__ or "")]
        for kind in kinds
    ]
    return "\n".join(_table([what, "is a", "meaning"], rows))


def states_page() -> str:
    """The states, with the words that others use for them."""
    elsewhere = {
        "blocked": "waiting-children, waiting (in an order)",
        "delayed": "scheduled, eta, countdown, retry",
        "ready": "waiting, pending, queued, available",
        "running": "active, executing, started, reserved",
        "completed": "done, success, succeeded",
        "dead": "failed, discarded, dead-letter",
        "cancelled": "revoked, aborted",
    }
    meanings = {one.name.lower(): one.meaning for one in _stated(node_of("faena.states:State"))}
    rows = [[_code(state.value), meanings[state.value], elsewhere[state.value]] for state in State]
    intro = "A job is in exactly one of these. [Every way between them](../design/states.md)."
    return _page("States", intro, "\n".join(_table(["state", "meaning", "called elsewhere"], rows)))


def _stated(node: ast.ClassDef | ast.FunctionDef) -> Iterator[Field]:
    for at, one in enumerate(node.body):
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            yield Field(one.targets[0].id, "", "", _below(node.body, at))


def commands_page() -> str:
    """Every command with its words and options."""
    intro = (
        "`faena COMMAND --help` says the same. Every command also takes `--json` and `--debug`: "
        "[command line](../cli.md) says what all share."
    )
    return _page("Commands", intro, *(_command(path, one) for path, one in _walk("faena", roof)))


def _walk(path: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in sorted(group.list_commands(context)):
        one = group.get_command(context, name)
        assert one is not None, f"no command {path} {name}"
        yield f"{path} {name}", one
        if isinstance(one, click.Group):
            yield from _walk(f"{path} {name}", one)


def _command(path: str, one: click.Command) -> str:
    text = (one.help or "").split("\b")[0].strip()
    usage = " ".join(
        [path, *click.Context(one, info_name=path).command.collect_usage_pieces(click.Context(one))]
    )
    rows = [
        [
            _code(" ".join((*found.opts, *found.secondary_opts))),
            _cell(_kind(found)),
            _cell(_meaning(found)),
        ]
        for found in one.params
        if isinstance(found, click.Option)
        and not (found.hidden or {"--json", "--debug"} & set(found.opts))
    ]
    table = ["", *_table(["option", "takes", "meaning"], rows)] if rows else []
    return "\n".join(
        [f"## {path.removeprefix('faena ')}", "", f"```text\n{usage}\n```", "", text, *table]
    )


def _meaning(option: click.Option) -> str:
    """Its help with its default, as `--help` shows them."""
    shown = option.get_help_record(click.Context(click.Command("")))
    assert shown is not None, f"{option.opts} has no help"
    return shown[1].replace("; required]", "]").replace("[required]", "Required.")


def _kind(option: click.Option) -> str:
    if option.is_flag:
        return "nothing"
    if isinstance(option.type, click.Choice):
        return " or ".join(str(choice) for choice in option.type.choices)
    if option.envvar:
        return f"{option.type.name}, or {option.envvar}"
    return f"{option.metavar or option.type.name}".lower()


def environment_page() -> str:
    """Every variable that the library or the command line reads."""
    found = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in _VARIABLE.findall(path.read_text("utf-8"))
    }
    found = {name for name in found if not _NO_VARIABLES.fullmatch(name)} - _PRIVATE
    assert found == set(VARIABLES), f"to be described, or gone: {sorted(found ^ set(VARIABLES))}"
    rows = [[_code(name), _cell(meaning)] for name, meaning in VARIABLES.items()]
    return _page(
        "Environment",
        "Read at first use, never at import.",
        "\n".join(_table(["variable", "meaning"], rows)),
    )


def names_page() -> str:
    """What names and labels may look like."""
    rows = [
        ["app, namespace, queue, task, pool, schedule", f"`{names.NAME}`"],
        [
            "id, tenant, key, header name, name of a flow, of its nodes, of a worker in code, by",
            f"1 to {names.LABEL_MAX} printable characters without spaces",
        ],
        ["name of a worker on the command line", "1 to 100 letters, digits, `.`, `_` or `-`"],
        ["reason of a hold", f"1 to {names.REASON_MAX} printable characters"],
        ["name or code of an error", f"1 to {names.WORDS_MAX} printable characters"],
    ]
    return _page(
        "Names",
        "Checked once, where they are given; whatever passes is safe in keys, URLs and logs.",
        "\n".join(_table(["what", "may be"], rows)),
    )


def metrics_page() -> str:
    """Every metric, with its names in other systems."""
    return _page("Metrics", reference_metrics.INTRO, *reference_metrics.sections())


def _page(title: str, intro: str, *sections: str) -> str:
    return "\n\n".join([f"# {title}", _NOTE, intro, *sections]) + "\n"


WRITTEN: Final[Mapping[str, Callable[[], str]]] = {
    "options.md": options_page,
    "values.md": values_page,
    "errors.md": errors_page,
    "states.md": states_page,
    "commands.md": commands_page,
    "environment.md": environment_page,
    "names.md": names_page,
    "metrics.md": metrics_page,
}


def main() -> None:
    """Write every page."""
    for name, write in WRITTEN.items():
        (PAGES / name).write_text(write(), "utf-8")
        sys.stdout.write(f"docs/reference/{name}\n")
    transitions.PAGE.write_text(transitions.page(), "utf-8")
    sys.stdout.write("docs/design/states.md\n")


if __name__ == "__main__":
    main()
