"""What tests of single scripts may ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests._support.rig import Rig
from tests._support.transfer import Transfer


@pytest.fixture
async def transfer(rig: Rig) -> AsyncIterator[Transfer]:
    """A second shard beside the rig's queue, obliterated afterwards as well."""
    transfer = Transfer(rig)
    yield transfer
    await transfer.target.obliterate()
