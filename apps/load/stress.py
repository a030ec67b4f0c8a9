"""A thousand users complete jobs (004 §9.1.5): warm up, ramp, sustain, cool down.

A completed job is invoiced. Who is turned away waits as long as was asked for and tries again. At
the end each completion that was accepted must have one invoice with one CAE, as the users' list,
the database and the tax office's ledger have it.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from apps.campotech.thresholds import thresholds_of
from apps.load import goals
from apps.load.crowd import Seen, send_crowd
from apps.load.crowd_plan import CrowdPlan, Errand, Group, Sample, Stage, write_errands
from apps.load.customers import make_customers
from apps.load.figure import Findings, Panel, at_percent, percentiles, share, shown
from apps.load.scene import Curves, Ended, Scene, beside, by_second, looking

_WARM, _RAMP, _SUSTAIN, _COOL = 1.0, 5.0, 5.0, 2.0
"""Minutes of the four stages."""
_FIRST, _MOST = 100, 1_000
"""Users at the end of the first and of the second one."""
_THINK_S: Final = 0.5
_MOST_PER_S: Final = 500
"""More completions than two cores answer: so many jobs are made."""
_OK: Final = frozenset({200, 202})
_STEP: Final = 50
_MAKE: Final = """
    INSERT INTO campotech.jobs
        (id, organization_id, customer_id, status, description, total_cents, scheduled_date)
    SELECT gen_random_uuid(), %s, customer, 'in_progress', 'load test', 1500000, now()
    FROM unnest(%s::uuid[]) customer
    RETURNING id
"""


@dataclass(slots=True)
class _Watched:
    """What was seen of the system in the meantime."""

    critical: dict[str, int] = field(default_factory=dict[str, int])
    """Looks at which a queue was critically deep."""
    most_critical: int = 0
    broker_ms: list[float] = field(default_factory=list[float])
    sustained: list[Any] = field(default_factory=list[Any])
    """The database's instants at which the stage of all users began and ended."""


async def play(scene: Scene) -> Findings:
    """The whole scenario."""
    findings = Findings("stress")
    jobs = await _make_jobs(scene)
    plan, watched = _plan(scene, jobs), _Watched()
    scene.screen.begin("stress", plan.seconds)
    curves = Curves()

    def look(seen: Seen) -> None:
        recent = [one.ms for one in seen.samples[-200:] if one.status in _OK]
        curves.note("users", seen.users)
        scene.screen.show(
            {
                "users": f"{seen.users:,}",
                "completions accepted": f"{seen.endings['taken']:,}",
                "p95": shown(at_percent(recent, 95), "ms"),
                "turned away": f"{seen.turned_away:,}",
                "issued": f"{curves.last('issued'):,.0f}",
                "without a CAE": f"{curves.last('without a CAE'):,.0f}",
            }
        )

    issued_before = (await scene.left()).issued
    since = await scene.now()
    async with beside(_watch(scene, watched, curves, issued_before)):
        seen = await send_crowd(plan, look)
    accepted = {jobs[index][0] for index in seen.indexes("users", "taken")}
    scene.books.add(accepted, {jobs[one.errand][0] for one in seen.done})
    left = await scene.left()
    scene.screen.say(f"{len(accepted):,} accepted; {left.pending:,} invoices still wait for a CAE")
    settled = await scene.settle()
    until = await scene.now()
    _measure(findings, seen, watched)
    await _measure_jobs(scene, findings, watched, since, until)
    made = f"{len(accepted):,} of {len(jobs):,} jobs accepted, {left.pending:,} without a CAE then"
    findings.facts["completions"] = f"{made}; all done {settled.seconds:.1f} s after"
    settled.judge(findings)
    await scene.books.judge(findings)
    findings.panels += _panels(seen, curves)
    return findings


async def _make_jobs(scene: Scene) -> list[tuple[UUID, int]]:
    """Jobs that technicians are at, and whose they are; organisations take turns."""
    sizes, businesses = scene.sizes, scene.stage.businesses
    seconds = sizes.seconds(_WARM + _RAMP + _SUSTAIN + _COOL)
    most = min(_MOST_PER_S, sizes.crowd(_MOST) / _THINK_S) * seconds
    each = max(1, round(most / len(businesses)))
    made: list[list[tuple[UUID, int]]] = []
    for who, customers in enumerate(await make_customers(scene, each)):
        rows = await scene.stage.rows(_MAKE, businesses[who].id, customers)
        made.append([(job, who) for (job,) in rows])
    scene.screen.say(f"{each * len(businesses):,} jobs are in progress")
    return [one for turn in zip(*made, strict=True) for one in turn]


def _plan(scene: Scene, jobs: list[tuple[UUID, int]]) -> CrowdPlan:
    sizes = scene.sizes
    errands = [
        Errand("complete", "POST", f"/api/v1/jobs/{job}/complete", who, json.dumps({}))
        for job, who in jobs
    ]
    first, most = sizes.crowd(_FIRST), sizes.crowd(_MOST)
    stages = (
        Stage(sizes.seconds(_WARM), first),
        Stage(sizes.seconds(_RAMP), most),
        Stage(sizes.seconds(_SUSTAIN), most),
        Stage(sizes.seconds(_COOL), 0),
    )
    group = Group(
        name="users",
        stages=stages,
        errands=write_errands(scene.directory / "stress.errands", errands),
        headers=tuple(one.headers for one in scene.stage.businesses),
        think_s=_THINK_S,
    )
    return CrowdPlan(url=scene.stage.url, groups=(group,))


async def _watch(scene: Scene, watched: _Watched, curves: Curves, issued_before: int) -> None:
    """Look at the system once a second."""
    sizes, began = scene.sizes, time.monotonic()
    bounds = [sizes.seconds(_WARM + _RAMP), sizes.seconds(_WARM + _RAMP + _SUSTAIN)]

    async def look() -> None:
        scene.stage.crew.check()
        left = await scene.left()
        curves.note("issued", left.issued - issued_before)
        curves.note("without a CAE", left.pending)
        passed = time.monotonic() - began
        if len(watched.sustained) < len(bounds) and passed >= bounds[len(watched.sustained)]:
            watched.sustained.append(await scene.now())
        watched.broker_ms.append((await scene.stage.system.app.health()).latency_ms or 0.0)
        await _note_critical(scene, watched)

    await looking(look)


async def _note_critical(scene: Scene, watched: _Watched) -> None:
    """Which queues are deeper than the level at which somebody is woken."""
    deep = 0
    for queue in scene.stage.system.queues.values():
        ready = (await queue.overview()).counts["ready"]
        if ready >= thresholds_of(queue.name).depth.critical:
            watched.critical[queue.name] = watched.critical.get(queue.name, 0) + 1
            deep += 1
    watched.most_critical = max(watched.most_critical, deep)


def _measure(findings: Findings, seen: Seen, watched: _Watched) -> None:
    ended = sum(seen.endings[one] for one in ("taken", "refused", "unknown"))
    taken = 100 * seen.endings["taken"] / ended if ended else None
    note = ", ".join(f"{count:,} {ending}" for ending, count in sorted(seen.endings.items()))
    findings.measure(goals.COMPLETION_TAKEN, taken, note)
    answered = [one.ms for one in seen.samples if one.status in _OK]
    quick = share(one < goals.COMPLETION_TIME.limit for one in answered)
    note = f"{percentiles(answered)}; {quick:.0f} % in time; {_users_in_time(seen)}"
    findings.measure(goals.COMPLETION_TIME, at_percent(answered, 95), note)
    names = ", ".join(sorted(watched.critical)) or "none"
    note = f"the most at one look, by depth (000 §10.2): {names}"
    findings.measure(goals.NO_CRITICAL, watched.most_critical, note)
    note = f"seen from a busy process: {percentiles(watched.broker_ms)}"
    findings.measure(goals.BROKER_TIME, at_percent(watched.broker_ms, 95), note)
    findings.facts["turned away"] = f"{seen.turned_away:,} answers, {seen.unanswered:,} unanswered"
    findings.facts["delay of the users' process"] = seen.delay
    findings.facts["most users"] = f"{seen.most_users:,}"


def _users_in_time(seen: Seen) -> str:
    """Up to how many users the goal was met: the p95 of the seconds with so many."""
    steps: dict[int, list[float]] = {}
    for one in seen.samples:
        if one.status in _OK:
            steps.setdefault(seen.users_at(one.at) // _STEP, []).append(one.ms)
    good = 0
    for step, ms in sorted(steps.items()):
        if at_percent(ms, 95) >= goals.COMPLETION_TIME.limit:
            break
        good = (step + 1) * _STEP
    return f"met up to {good:,} users" if good else "met with no number of users"


async def _measure_jobs(
    scene: Scene, findings: Findings, watched: _Watched, since: Any, until: Any
) -> None:
    """What workers did, by the history."""
    begins, ends = (*watched.sustained, until, until)[:2]
    ended: list[Ended] = await scene.ended(since, until)
    minutes = (ends - begins).total_seconds() / 60
    sustained = sum(begins <= one.finished_at < ends for one in ended)
    whole = len(ended) / ((until - since).total_seconds() / 60)
    rate = sustained / minutes if minutes else None
    note = f"while all users were there; {whole:,.0f} until all was done; {len(ended):,} jobs"
    findings.measure(goals.JOBS_A_MINUTE, rate, note)
    attempts = sum(one.attempts for one in ended)
    failed = sum(one.attempts - (one.state == "completed") for one in ended)
    percent = 100 * failed / attempts if attempts else None
    findings.measure(goals.STRESS_ERRORS, percent, f"{failed:,} of {attempts:,}")


def _panels(seen: Seen, curves: Curves) -> list[Panel]:
    answered: list[Sample] = [one for one in seen.samples if one.status in _OK]
    return [
        Panel(
            "completion (ms, p95 of each second)", [by_second("complete", answered, curves.began)]
        ),
        Panel("users", [curves.line("users")]),
        Panel("invoices", [curves.line("without a CAE"), curves.line("issued")]),
    ]
