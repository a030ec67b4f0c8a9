"""CampoTech with a model, and with all ways to tell people something."""

from __future__ import annotations

import pytest
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from faena.testing import Harness
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office


@pytest.fixture
async def office(
    system: System, sandbox: Sandbox, business: Business, harnessed: Harness
) -> Office:
    """An organisation with an owner, and a customer who writes."""
    made = Office(system=system, world=sandbox, business=business, harness=harnessed)
    await made.open()
    await system.app.features.follow()
    return made


@pytest.fixture
async def other(system: System, sandbox: Sandbox) -> Business:
    """Another organisation, with a number of its own."""
    return await Business.make(system, sandbox, number="106540352249999")
