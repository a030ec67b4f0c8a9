"""`database_event` records what happens to the PostgreSQL beside the broker."""

from __future__ import annotations

import pytest

from faena.engine.calls.pg import tell
from faena.engine.calls.resilience import SHARD
from tests._support.upstream_rig import UpstreamRig

EVENTS = [
    *("outbox_late", "outbox_on_time", "replica_late", "replica_on_time", "partitions_short"),
    *("history_late", "history_on_time", "history_gap", "archive_failed"),
]


@pytest.mark.parametrize("event", EVENTS)
async def test_an_event_names_its_subject_and_the_reason(
    upstreams: UpstreamRig, event: str
) -> None:
    await tell(upstreams.engine, event, "jobs", "3 wait")
    assert (await upstreams.told())[-1][2:] == [event, "jobs\n3 wait"]


async def test_an_unknown_event_is_refused(upstreams: UpstreamRig) -> None:
    answer = await upstreams.engine.ask("database_event", SHARD, event="x", what="y")
    assert answer == b"UNKNOWN_EVENT"
    assert await upstreams.told() == []
