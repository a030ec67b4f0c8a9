"""tenant.lua"""

from __future__ import annotations

from faena.engine.scripts import pairs
from tests._support.rig import SECOND, T0, Rig


async def test_an_override_is_read_as_it_was_written_and_ends_by_itself(rig: Rig) -> None:
    await rig.declare()
    changes = {"weight": "2.5", "limits": "5/1000000"}
    await rig.engine.tenant("q", "@a", changes, by="ops", duration_us=10 * SECOND)
    fields, live, running, again = await rig.engine.tenant("q", "@a")
    assert pairs(fields) == {
        "weight": b"2.5",
        "limits": b"5/1000000",
        "by": b"ops",
        "at": str(T0).encode(),
        "ends_at": str(T0 + 10 * SECOND).encode(),
    }
    assert (live, running, again) == (0, 0, b"")
    rig.clock.go(10)
    assert (await rig.engine.tenant("q", "@a"))[0] == []
    assert "tenants" not in await rig.dump()
