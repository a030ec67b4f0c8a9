"""What tests of single scripts may ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests._support.removal import Removal
from tests._support.rig import Rig


@pytest.fixture
async def removal(rig: Rig) -> AsyncIterator[Removal]:
    """A second shard beside the rig's queue, obliterated afterwards as well."""
    removal = Removal(rig)
    yield removal
    await removal.target.obliterate()
