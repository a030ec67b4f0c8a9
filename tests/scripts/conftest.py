"""What tests of single scripts may ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from faena.engine.calls.history import HistoryCalls
from faena.engine.wire.wire import Wire
from tests._support.alert_rig import AlertRig
from tests._support.desk_rig import DeskRig
from tests._support.faulty_wire import FaultyWire
from tests._support.feature_rig import FeatureRig
from tests._support.past import ROOM
from tests._support.restored_queue import RestoredQueue
from tests._support.rig import Rig
from tests._support.transfer import Transfer
from tests._support.upstream_rig import UpstreamRig
from tests._support.valkey import Server


@pytest.fixture
def desk_rig(rig: Rig) -> DeskRig:
    return DeskRig(rig)


@pytest.fixture
async def transfer(rig: Rig) -> AsyncIterator[Transfer]:
    """A second shard beside the rig's queue, obliterated afterwards as well."""
    transfer = Transfer(rig)
    yield transfer
    await transfer.target.obliterate()


@pytest.fixture
async def faulty(rig: Rig, wire: Wire) -> AsyncIterator[FaultyWire]:
    """What the rig's engine sends through while a test lasts."""
    faulty = rig.engine.wire = FaultyWire(wire.address)
    yield faulty
    rig.engine.wire = wire
    await faulty.close()


@pytest.fixture(scope="module")
def restored() -> Iterator[RestoredQueue]:
    with Server("appendonly no", unix=True) as server:
        restored = RestoredQueue(server)
        yield restored
        restored.close()


@pytest.fixture
async def upstreams(rig: Rig) -> AsyncIterator[UpstreamRig]:
    """Upstreams beside the rig's queue; what has no TTL is removed afterwards."""
    upstreams = UpstreamRig(rig)
    yield upstreams
    await upstreams.clear()


@pytest.fixture
async def features(upstreams: UpstreamRig) -> AsyncIterator[FeatureRig]:
    """Features beside the upstreams, removed afterwards."""
    features = FeatureRig(upstreams)
    yield features
    await features.clear()


@pytest.fixture
async def alerts(rig: Rig) -> AsyncIterator[AlertRig]:
    """Alerts beside the rig's queue, removed afterwards."""
    alerts = AlertRig(rig)
    yield alerts
    await alerts.clear()


@pytest.fixture
async def past(rig: Rig) -> AsyncIterator[HistoryCalls]:
    """The history of the rig's queue, which is on; gone with the queue."""
    await rig.declare()
    await rig.edit(**{"history:room": ROOM})
    yield HistoryCalls(rig.engine)
    await rig.obliterate()
    for name in ("history", "history_stats"):
        await rig.engine.command("DEL", rig.queue, name)
