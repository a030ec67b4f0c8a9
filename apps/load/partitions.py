"""Years of jobs of many organisations: recent and historical lists over HTTP (004 §9.1.4).

The table is partitioned by month. A list of a recent time must open only its partitions, whatever
is in the others; roll-ups answer what a dashboard asks (001 §3.3).
"""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from apps.campotech.jobs import page
from apps.load import goals
from apps.load.crowd import Seen, send_crowd
from apps.load.crowd_plan import CrowdPlan, Errand, Group, Stage, write_errands
from apps.load.figure import Findings, Panel, at_percent, percentiles, shown
from apps.load.scene import Curves, Scene, by_second

_YEARS: Final = 2
"""As long as jobs are kept."""
_DAYS: Final = 365 * _YEARS
_MINUTES: Final = 2.0
_RECENT: Final = timedelta(days=14)
_USERS: Final = 10
_THINK_S: Final = 0.5
_DEPTHS: Final = (0, 60, 180, 365, 600)
"""Days ago at which the historical lists end: the newest page of each is asked for."""
_WALKED: Final = 3
"""Organisations whose whole history is read, page by page."""
_ROLLED_DAYS, _ROUNDS = 30, 50
_STATUSES: Final = ["completed", "completed", "completed", "cancelled", "scheduled"]
_FILL: Final = """
    INSERT INTO campotech.jobs (id, organization_id, customer_id, status, description, address,
        total_cents, created_at, completed_at)
    SELECT gen_random_uuid(), (%(owners)s::uuid[])[1 + n %% %(count)s],
        (%(customers)s::uuid[])[1 + n %% %(count)s],
        (%(statuses)s::text[])[1 + n %% 5], 'visita ' || n, 'Rivadavia ' || n %% 9000,
        1000000 + n %% 50000, %(since)s + (%(until)s - %(since)s) * (n::float8 / %(rows)s), NULL
    FROM generate_series(0, %(rows)s - 1) n
"""
_DASHBOARD: Final = """
    SELECT day, status, sum(jobs) FROM campotech.jobs_per_day
    WHERE organization_id = %s AND day > %s GROUP BY day, status
"""


async def play(scene: Scene) -> Findings:
    """The whole scenario."""
    findings, now = Findings("partitions"), datetime.now(UTC)
    await _fill(scene, now)
    plan = _plan(scene, now)
    scene.screen.begin("partitions", plan.seconds)
    curves = Curves()

    def look(seen: Seen) -> None:
        facts = {"users": f"{seen.users:,}"}
        for name in ("recent", "historical"):
            ms = [one.ms for one in seen.of(name)[-100:]]
            facts[f"{name} p95"] = shown(at_percent(ms, 95), "ms")
        scene.screen.show(facts)

    seen = await send_crowd(plan, look)
    for name, goal in (("recent", goals.RECENT_JOBS), ("historical", goals.HISTORICAL_JOBS)):
        ms = [one.ms for one in seen.of(name)]
        findings.measure(goal, at_percent(ms, 95), percentiles(ms))
    wrong = sum(one.status != 200 for one in seen.samples)
    findings.none("lists refused", wrong, f"of {len(seen.samples):,} requests")
    findings.facts["delay of the users' process"] = seen.delay
    await _walk(scene, findings, now)
    await _explain(scene, findings, now)
    await _roll_up(scene, findings, now.date())
    lines = [by_second(name, seen.of(name), curves.began) for name in ("recent", "historical")]
    findings.panels.append(Panel("lists of jobs (ms, p95 of each second)", lines))
    return findings


async def _fill(scene: Scene, now: datetime) -> None:
    """A month at a time, so that it can be watched."""
    system, rows = scene.stage.system, scene.sizes.rows
    begins = now - timedelta(days=_DAYS - 1)
    scene.screen.begin("partitions", 0)
    scene.screen.say(f"{rows:,} jobs of {_YEARS} years are filled in")
    await system.pg.partitioned_table("campotech.jobs").ensure(since=begins.date())
    parts, businesses = 12 * _YEARS, scene.stage.businesses
    step = (now - begins) / parts
    for part in range(parts):
        given: dict[str, Any] = {
            "owners": [one.id for one in businesses],
            "customers": [one.customers[0].id for one in businesses],
            "count": len(businesses),
            "statuses": _STATUSES,
            "since": begins + part * step,
            "until": begins + (part + 1) * step,
            "rows": rows // parts,
        }
        async with system.pg.transaction("fill") as connection:
            await connection.execute(_FILL, given)
        scene.screen.show({"jobs": f"{(part + 1) * (rows // parts):,}"})
    async with system.pg.autocommit() as connection:
        await connection.execute("VACUUM ANALYZE campotech.jobs")


def _plan(scene: Scene, now: datetime) -> CrowdPlan:
    errands: list[Errand] = []
    first = now - timedelta(days=_DAYS)
    for who in range(len(scene.stage.businesses)):
        depth = now - timedelta(days=_DEPTHS[who % len(_DEPTHS)])
        errands.append(Errand("recent", "GET", _path(now - _RECENT), who))
        errands.append(Errand("historical", "GET", _path(first, until=depth), who))
    users, seconds = scene.sizes.crowd(_USERS), scene.sizes.seconds(_MINUTES)
    group = Group(
        name="readers",
        stages=(Stage(0.0, users), Stage(seconds, users)),
        errands=write_errands(scene.directory / "partitions.errands", errands),
        headers=tuple(one.headers for one in scene.stage.businesses),
        think_s=_THINK_S,
        repeats=True,
    )
    return CrowdPlan(url=scene.stage.url, groups=(group,))


def _path(
    since: datetime,
    *,
    until: datetime | None = None,
    cursor: str | None = None,
    limit: int = page.PAGE,
) -> str:
    given = {"since": since.isoformat(), "limit": limit, "until": until and until.isoformat()}
    asked = {name: value for name, value in {**given, "cursor": cursor}.items() if value}
    return f"/api/v1/jobs?{urlencode(asked)}"


async def _walk(scene: Scene, findings: Findings, now: datetime) -> None:
    """Whole histories: a page costs the same however late it is, and no job is missing."""
    times: list[float] = []
    read = missing = 0
    for business in scene.stage.businesses[:_WALKED]:
        ids, cursor, since = set[str](), None, now - timedelta(days=_DAYS)
        while True:
            began = time.perf_counter()
            path = _path(since, cursor=cursor, limit=page.MOST)
            answer = (await scene.stage.http.get(path, headers=business.headers)).json()
            times.append(1000 * (time.perf_counter() - began))
            ids.update(one["id"] for one in answer["jobs"])
            cursor = answer["nextCursor"]
            if cursor is None:
                break
        ((known,),) = await scene.stage.rows(
            "SELECT count(*) FROM campotech.jobs WHERE organization_id = %s", business.id
        )
        read, missing = read + len(ids), missing + abs(known - len(ids))
    findings.facts["whole histories"] = (
        f"{read:,} jobs in {len(times):,} pages of {page.MOST}: {percentiles(times)}"
    )
    findings.none("jobs missing from pages", missing, f"of {read:,}")


async def _explain(scene: Scene, findings: Findings, now: datetime) -> None:
    """Which partitions the two queries open."""
    ((every,),) = await scene.stage.rows(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = 'campotech.jobs'::regclass"
    )
    for name, back in (("recent", _RECENT), ("historical", timedelta(days=_DAYS))):
        given = page.parameters(
            scene.stage.businesses[0].id, since=now - back, until=now, after=None, most=page.PAGE
        )
        async with scene.stage.system.pg.transaction("explain") as connection:
            query = f"EXPLAIN (ANALYZE, FORMAT JSON) {page.QUERY}"
            row = await (await connection.execute(query.encode(), given)).fetchone()
        told = row[0][0] if row else {}
        opened = _opened(told.get("Plan", {}))
        findings.facts[f"plan, {name}"] = (
            f"{len(opened)} of {every} partitions opened, {told.get('Execution Time', 0):.1f} ms"
        )
        if name == "recent":
            beyond = max(0, len(opened) - 2)  # two weeks are in two months at most
            findings.none("partitions opened in vain", beyond, json.dumps(sorted(opened)))


def _opened(plan: dict[str, Any]) -> set[str]:
    """Relations that were read; those that the plan names and never begins do not count."""
    is_read = "Relation Name" in plan and plan.get("Actual Loops", 0) > 0
    own = {plan["Relation Name"]} if is_read else set[str]()
    return own.union(*(_opened(one) for one in plan.get("Plans", [])))


async def _roll_up(scene: Scene, findings: Findings, today: date) -> None:
    """Roll up some days, then ask as a dashboard does."""
    rollup, times = scene.stage.system.rollups.jobs, list[float]()
    for back in range(_ROLLED_DAYS):
        began = time.perf_counter()
        await rollup.run(today - timedelta(days=back))
        times.append(time.perf_counter() - began)
    note = f"the slowest of {_ROLLED_DAYS} days"
    findings.measure(goals.ROLLUP, max(times), note)
    asked: list[float] = []
    for number in range(_ROUNDS):
        business = scene.stage.businesses[number % len(scene.stage.businesses)]
        began = time.perf_counter()
        await scene.stage.rows(_DASHBOARD, business.id, today - timedelta(days=_ROLLED_DAYS))
        asked.append(1000 * (time.perf_counter() - began))
    findings.measure(goals.DASHBOARD, at_percent(asked, 95), percentiles(asked))
