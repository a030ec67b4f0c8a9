"""Everything of a tenant goes, in every place; nothing of another tenant is touched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.errors import ArgumentError, ConfigError, InvalidTransition, JobNotFound
from faena.pg import Archive, History, Postgres
from faena.pg.archive.manifest import folder_of, manifest_key
from faena.pg.archive.store import open_store
from faena.pg.archive.term import Term
from faena.pg.erasure import archived, broker
from faena.pg.erasure.place import NotYet
from faena.states import State
from tests._support.archived import archive, keys_in, row
from tests._support.eventually import eventually
from tests._support.two_tenants import YEAR, World
from tests._support.working import serving

ASKED: dict[str, Any] = {"by": "ana", "reason": "asked by letter"}


@pytest.fixture
async def pg(app: Faena, database: str) -> AsyncIterator[Postgres]:
    async with Postgres(app, database, relay=False, history=History()) as pg:
        yield pg


@pytest.fixture
async def world(app: Faena, pg: Postgres, tmp_path: Path) -> World:
    world = World(app, pg, tmp_path / "archives")
    await world.fill()
    return world


async def test_an_erasure_reaches_every_place_and_nobody_else(world: World) -> None:
    before = {one: await world.held(one) for one in ("a", "b", "a/b")}
    for place in before["a"]:
        assert before["a"][place], place
    plan = await world.erasures.plan("a")
    assert await world.held("a") == before["a"]
    asked = await world.pg.erase(tenant="a", **ASKED)
    assert (asked.state, asked.by, asked.reason, asked.tenant) == (
        "waiting", "ana", "asked by letter", "a",
    )  # fmt: skip
    done = await world.done(asked.id)
    assert await world.held("b") == before["b"]
    assert await world.held("a/b") == before["a/b"]
    left = await world.held("a")
    assert {place: len(some) for place, some in left.items() if some} == {"invoices": 5, "deeds": 3}
    assert left["invoices"] == before["a"]["invoices"][:5]
    gone = [key for key in before["a"]["files"] if (world.folder / key).exists()]
    assert gone == []
    counts = {place: len(some) for place, some in before["a"].items()}
    assert {one: done.erased[one] for one in ("outbox", "effects", "retrievals", "jobs")} == {
        "outbox": 1, "effects": 1, "retrievals": 1, "jobs": 5,
    }  # fmt: skip
    assert done.erased["table public.visits"] == counts["visits"]
    assert done.erased["table public.pings"] == counts["pings"]
    assert done.erased["table public.invoices"] == 3
    objects = [done.erased[f"archives public.{one}"] for one in ("visits", "pings")]
    assert sum(objects) == counts["archives"]
    assert done.erased["history"] >= counts["history"] == 5
    assert plan.found["jobs"] == 5


async def test_nothing_that_a_job_returned_is_left(world: World) -> None:
    """That an effect has happened stays, so that it does not happen again; its result goes."""
    before = await world.run("SELECT job, result FROM faena.effects WHERE tenant = 'b'")
    await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    after = await world.run("SELECT job, result FROM faena.effects")
    assert len(after) == 2
    assert [one for one in after if one[1] is not None] == before


async def test_results_without_a_tenant_go_with_the_jobs_that_returned_them(world: World) -> None:
    """Records of earlier releases have no tenant: their queue and job tell whose they are."""
    await world.app.dead_letters.retry_as_new("mail", "a-13", by="ana", reason="once more")
    async with serving(world.app):
        await eventually(world.is_quiet)
    await world.mail.handle("a-13").remove()
    for queue, job, tenant in (
        ("mail", "a-1", None),
        ("mail", "a-13", None),  # of the job that was retried, whose id is another
        ("post", "a-1", None),
        ("mail", "a-2", "b"),
        ("mail", "b-1", None),
    ):
        await world.run(
            "INSERT INTO faena.effects (queue, job, attempt, tenant, result)"
            " VALUES (%s, %s, 1, %s, 'old')",
            *(queue, job, tenant),
        )
    done = await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    left = await world.run("SELECT queue, job FROM faena.effects WHERE result = 'old' ORDER BY 2")
    assert sorted(left) == [("mail", "a-2"), ("mail", "b-1"), ("post", "a-1")]
    assert done.erased["effects"] == 3


async def test_the_catalogue_of_archives_forgets_whose_rows_they_had(world: World) -> None:
    """But for the key, under which the object is looked for again for a week."""
    before = await world.run("SELECT id, last_key FROM faena.archives WHERE tenant = 'a'")
    assert all("a" in key for _, key in before)
    await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    after = await world.run("SELECT to_jsonb(a) - 'key' FROM faena.archives a WHERE tenant IS NULL")
    left = {one["id"]: one for (one,) in after if one["state"] == "erased"}
    assert left.keys() == {id_ for id_, _ in before}
    for one in left.values():
        assert one["last_key"] == []
        assert "a" not in one.values()


async def test_objects_of_archives_that_were_restored_go(world: World, database: str) -> None:
    store = open_store(world.folder)
    async with Postgres(world.app, database, relay=False) as later:
        given: dict[str, Any] = {"by": "at", "tenant": "org", "then": Archive(to=world.folder)}
        later.retain("visits", keep="50y", **given)
        assert (await later.restore("visits", tenant="a")).rows > 0
    assert await keys_in(store, folder_of("public.visits", "a")) != []
    done = await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    assert done.erased["table public.visits"] == 24
    assert await keys_in(store, folder_of("public.visits", "a")) == []
    assert await keys_in(store, folder_of("public.visits", "b")) != []


async def test_objects_of_exports_that_were_interrupted_go(world: World) -> None:
    """Their rows are still in the table, or in another object."""
    store = open_store(world.folder)
    states = ("writing", "verified", "discarded")
    keys = {
        state: await archive(
            world.pg, store, "a", [row(1, "2025-01-02 00:00:00+00")], table="public.visits"
        )
        for state in states
    }
    for state, key in keys.items():
        await world.run("UPDATE faena.archives SET state = %s WHERE key = %s", state, key)
    await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    assert [state for state, key in keys.items() if (world.folder / key).exists()] == []
    assert await keys_in(store, folder_of("public.visits", "a")) == []


async def test_objects_of_all_pages_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a law protects fill the first page."""
    monkeypatch.setattr(archived, "_PAGE", 2)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    young = [row(n, f"{today - timedelta(days=n % 2):%Y-%m-%d} 00:00:00+00") for n in range(3)]
    old = [row(n, "2001-02-03 00:00:00+00") for n in range(5)]
    store = open_store(world.folder)
    keys = [await archive(world.pg, store, "a", [one], table="public.deals") for one in young + old]
    await world.run(
        "INSERT INTO faena.retentions (table_name, keep, legal) VALUES"
        " ('public.deals', '10y', '10y')"
    )
    plan = await world.erasures.plan("a")
    assert plan.found["archives public.deals"] == len(old)
    (kept,) = [one for one in plan.kept if one.place == "archives public.deals"]
    assert (kept.number, kept.until) == (len(young), Term(months=120).after(today))
    done = await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    assert done.erased["archives public.deals"] == len(old)
    assert await keys_in(store, folder_of("public.deals", "a")) == sorted(
        name for key in keys[: len(young)] for name in (key, manifest_key(key))
    )


async def test_what_a_law_protects_is_kept_and_reported_until_when(world: World) -> None:
    done = await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    kept = {one.place: one for one in done.kept}
    assert set(kept) == {"table public.invoices", "table public.deeds"}
    invoices, deeds = kept["table public.invoices"], kept["table public.deeds"]
    assert (invoices.number, invoices.reason) == (5, "it must be kept for 10y")
    today = datetime.now(UTC)
    assert invoices.until is not None
    years = (invoices.until - today) / timedelta(days=365.25)
    assert 7.9 < years < 8.1
    assert (deeds.number, deeds.reason, deeds.until) == (3, "it must be kept for ever", None)
    plan = await world.erasures.plan("a")
    assert set(plan.found.values()) == {0}
    assert (plan.total, plan.live, {one.place for one in plan.kept}) == (0, 0, set(kept))


async def test_protection_that_was_declared_before_counts_without_the_policy(
    world: World, database: str
) -> None:
    """A program of which the policy was removed still cannot erase, and still finds archives."""
    await world.run("UPDATE faena.retentions SET legal = '10y' WHERE table_name = 'public.visits'")
    world.pg.retentions.clear()
    before = await world.held("a")
    plan = await world.erasures.plan("a")
    kept = {one.place: one.number for one in plan.kept}
    assert kept == {"archives public.visits": _of(before, "visits")}
    done = await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    after = await world.held("a")
    assert [key for key, *_ in after["archives"]] == [
        key for key, *_ in before["archives"] if key.startswith("public.visits")
    ]
    assert after["visits"] == before["visits"]
    assert "archives public.pings" in done.erased


def _of(held: dict[str, Any], table: str) -> int:
    return sum(key.startswith(f"public.{table}") for key, *_ in held["archives"])


async def test_live_jobs_refuse_an_erasure_or_are_cancelled_by_it(world: World) -> None:
    await world.send.enqueue(1, tenant="a", id="later", delay="1h")
    await world.send.enqueue(1, tenant="b", id="later-b", delay="1h")
    with pytest.raises(InvalidTransition, match="the tenant has 1 live jobs"):
        await world.pg.erase(tenant="a", **ASKED)
    assert await world.erasures.list() == []
    assert (await world.erasures.plan("a")).live == 1
    done = await world.done((await world.pg.erase(tenant="a", cancel_live=True, **ASKED)).id)
    assert done.state == "done"
    assert await world.jobs("a") == []
    assert ("mail", "later-b", State.DELAYED) in await world.jobs("b")


async def test_a_later_request_may_cancel_what_the_first_one_waits_for(world: World) -> None:
    first = await world.pg.erase(tenant="a", **ASKED)
    await world.send.enqueue(1, tenant="a", id="later", delay="1h")
    second = await world.pg.erase(tenant="a", cancel_live=True, **ASKED)
    assert second.id == first.id
    await world.done(first.id)
    assert await world.jobs("a") == []


async def test_jobs_of_all_pages_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of another tenant fill the first page."""
    monkeypatch.setattr(broker, "_PAGE", 2)
    before = len(await world.jobs("a"))
    for number in range(5):
        await world.send.enqueue(1, tenant="a", id=f"more-{number}")
    async with serving(world.app):
        await eventually(world.is_quiet)
    for number in range(5):
        await world.send.enqueue(1, tenant="a", id=f"live-{number}", delay="1h")
    plan = await world.erasures.plan("a")
    assert (plan.found["jobs"], plan.live) == (before + 10, 5)
    done = await world.done((await world.pg.erase(tenant="a", cancel_live=True, **ASKED)).id)
    assert done.erased["jobs"] == before + 10
    assert await world.jobs("a") == []
    assert len(await world.jobs("b")) == before


async def test_nothing_goes_while_tenants_move_between_shards(world: World) -> None:
    """A job on its way would outlive the erasure."""
    began, gate, queue = asyncio.Event(), asyncio.Event(), world.app.queue("fair", fair=True)

    @queue.task
    async def wait(_number: int) -> None:
        began.set()
        await gate.wait()

    async def is_moving() -> bool:
        return (await queue.shards()).is_moving

    await wait.enqueue(1, tenant="b")
    async with serving(world.app):
        await began.wait()
        await queue.tenant("b").dedicate(wait="50ms")
        await eventually(is_moving)
        with pytest.raises(NotYet, match="move to other shards now"):
            await world.pg.erase(tenant="a", **ASKED)
        asked = await world.pg.erase(tenant="a", cancel_live=True, **ASKED)

        async def is_told() -> bool:
            told = await world.erasures.look(asked.id)
            return told.state == "done" or "move to other shards" in (told.problem or "")

        await eventually(is_told)
        assert (await world.erasures.look(asked.id)).state == "waiting"
        assert len(await world.jobs("a")) == 5
        gate.set()
    await world.done(asked.id)
    assert await world.jobs("a") == []


async def test_a_job_that_runs_is_stopped_before_anything_of_it_is_removed(world: World) -> None:
    began, queue = asyncio.Event(), world.app.queue("slow")

    @queue.task
    async def wait(_number: int) -> None:
        began.set()
        await asyncio.sleep(3600)

    await wait.enqueue(1, tenant="a")
    async with serving(world.app):
        await began.wait()
        asked = await world.pg.erase(tenant="a", cancel_live=True, **ASKED)

        async def is_done() -> bool:
            return (await world.erasures.look(asked.id)).state == "done"

        await eventually(is_done)
    assert await world.jobs("a") == []


async def test_a_job_that_comes_meanwhile_is_waited_for(world: World) -> None:
    asked = await world.pg.erase(tenant="a", **ASKED)
    await world.send.enqueue(1, tenant="a", id="later", delay="1h")

    async def is_told() -> bool:
        told = await world.erasures.look(asked.id)
        return "1 jobs of the tenant are live" in (told.problem or "")

    async with serving(world.app):
        await eventually(is_told)
        await world.mail.handle("later").promote()

        async def is_done() -> bool:
            return (await world.erasures.look(asked.id)).state == "done"

        await eventually(is_done)
    assert await world.jobs("a") == []


async def test_the_same_request_is_found_and_a_later_one_is_new(world: World) -> None:
    first = await world.pg.erase(tenant="a", **ASKED)
    again = await world.pg.erase(tenant="a", by="eva", reason="again")
    assert (again.id, again.by) == (first.id, "ana")
    with pytest.raises(InvalidTransition, match="are being erased"):
        await world.retrievals.retrieve("visits", tenant="a", **YEAR)
    await world.done(first.id)
    view = await world.retrievals.retrieve("visits", tenant="a", **YEAR)
    later = await world.pg.erase(tenant="a", cancel_live=True, by="eva", reason="again")
    assert later.id != first.id
    done = await world.done(later.id)
    assert done.erased["retrievals"] == 1
    assert not (world.folder / "retrievals" / view.id).exists()
    assert [one.id for one in await world.erasures.list(tenant="a")] == [later.id, first.id]
    assert await world.erasures.list(tenant="b") == []


async def test_a_tenant_that_nobody_knows_is_erased_at_once(world: World) -> None:
    for tenant in ("nobody", "7", "a_b", "../a", "%", "x y", "A"):
        before = {one: await world.held(one) for one in ("a", "b", "a/b")}
        done = await world.done((await world.pg.erase(tenant=tenant, **ASKED)).id)
        assert (done.erased, done.kept) == ({}, ()), tenant
        assert {one: await world.held(one) for one in ("a", "b", "a/b")} == before


async def test_a_tenant_is_compared_as_its_column_writes_it(world: World) -> None:
    done = await world.done((await world.pg.erase(tenant="1", **ASKED)).id)
    assert done.erased == {"table public.plans": 3}
    assert await world.run("SELECT DISTINCT org FROM plans") == [(0,)]


async def test_rows_of_detached_partitions_go_too(world: World) -> None:
    await world.partitioned.detach("pings_20250228")
    before = await world.run("SELECT count(*) FROM pings_20250228 WHERE org = 'b'")
    await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    assert await world.run("SELECT count(*) FROM pings_20250228 WHERE org = 'a'") == [(0,)]
    assert await world.run("SELECT count(*) FROM pings_20250228 WHERE org = 'b'") == before


async def test_a_request_whose_job_was_lost_is_finished_by_the_daily_job(world: World) -> None:
    asked = await world.pg.erase(tenant="a", **ASKED)
    await world.app.queues["erasures"].handle(asked.id).remove()
    assert await world.erasures.sweep() == 1
    await world.done(asked.id)
    assert await world.erasures.sweep() == 0
    other = await world.pg.erase(tenant="b", **ASKED)
    await world.app.queues["erasures"].handle(other.id).cancel()
    assert await world.erasures.sweep() == 1
    await world.done(other.id)


async def test_objects_that_a_frozen_process_writes_later_are_removed_daily(world: World) -> None:
    (key, *_), *_ = (await world.held("a"))["archives"]
    await world.run("UPDATE faena.archives SET changed_at = now() - interval '30 days'")
    await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    assert await world.run("SELECT count(*) FROM faena.archives WHERE tenant = 'a'") == [(0,)]
    path, beside = world.folder / key, world.folder / manifest_key(key)
    for _ in range(2):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"late")
        beside.write_bytes(b"late")
        await world.erasures.sweep()
        assert [one.exists() for one in (path, beside)] == [False, False]
    await world.run("UPDATE faena.archives SET changed_at = now() - interval '8 days'")
    await world.erasures.sweep()
    assert await world.run("SELECT count(*) FROM faena.archives WHERE state = 'erased'") == [(0,)]
    assert len((await world.held("b"))["archives"]) > 0


async def test_files_of_all_attempts_of_a_retrieval_go(world: World) -> None:
    """One that was frozen may have written its file when another had ended the request."""
    await world.run("UPDATE faena.retrievals SET keys = 'retrievals/early.gz'::text || keys")
    early = world.folder / "retrievals" / "early.gz"
    early.write_bytes(b"early")
    await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    assert not early.exists()


async def test_a_history_that_comes_late_is_not_stored(world: World) -> None:
    done = await world.done((await world.pg.erase(tenant="a", **ASKED)).id)
    await world.pg.history.read_now()
    assert (await world.held("a"))["history"] == []
    assert done.erased["history"] >= 5


async def test_what_is_not_valid_is_refused(pg: Postgres, world: World) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"tenant": ""}, "tenant must be"),
        ({"tenant": "a\0"}, "tenant must be"),
        ({"by": "a b"}, "by must be"),
        ({"by": ""}, "by must be"),
        ({"reason": " "}, "reason must be"),
    ]
    for change, words in wrong:
        with pytest.raises((ArgumentError, ConfigError), match=words):
            await pg.erase(**{"tenant": "a", **ASKED, **change})
    with pytest.raises(JobNotFound):
        await world.erasures.look("nothing")
    with pytest.raises(ConfigError, match="declared twice"):
        pg.erasure()
    other = Postgres(Faena("other"), "postgresql://nowhere/x")
    with pytest.raises(ConfigError, match="which is missing"):
        await other.erase(tenant="a", **ASKED)
    for name, value in {"rows": 0, "wait": "0s", "queue": "A B", "lease": "2h"}.items():
        with pytest.raises(ConfigError):
            other.erasure(**{name: value})


async def test_a_table_that_cannot_be_erased_keeps_no_other_place_from_it(world: World) -> None:
    await world.run("CREATE TABLE parts (visit int REFERENCES visits (id))")
    await world.run("INSERT INTO parts SELECT id FROM visits WHERE org = 'a' LIMIT 1")
    asked = await world.pg.erase(tenant="a", **ASKED)

    async def is_told() -> bool:
        return "foreign key" in ((await world.erasures.look(asked.id)).problem or "")

    async with serving(world.app):
        await eventually(is_told)
    left = await world.held("a")
    assert left["visits"]
    assert [left[one] for one in ("pings", "outbox", "effects", "jobs", "history")] == [[]] * 5
    await world.run("DROP TABLE parts")
    await world.app.queues["erasures"].handle(asked.id).promote()
    await world.done(asked.id)
    assert (await world.held("a"))["visits"] == []
