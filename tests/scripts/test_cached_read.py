"""cached_read.lua"""

from __future__ import annotations

from typing import Any

from tests._support.rig import SECOND, Rig

KEPT = {"fresh_us": 10 * SECOND, "lease_us": 5 * SECOND}


async def look(rig: Rig, token: str = "a") -> list[Any]:
    return list(await rig.engine.ask("cached_read", "q", verb="look", token=token, **KEPT))


async def end(rig: Rig, verb: str, token: str = "a", blob: str = "1") -> list[Any]:
    named = {"verb": verb, "token": token, "blob": blob, "keep_us": 60 * SECOND}
    return list(await rig.engine.ask("cached_read", "q", **named))


async def test_the_first_reader_of_a_missing_value_gets_the_lease_and_others_wait(rig: Rig) -> None:
    assert await look(rig) == [b"lease", b"", b"-1", b""]
    assert await look(rig, "b") == [b"busy", b"", b"-1", b""]
    assert (await rig.dump()).mortal == {"cached"}


async def test_a_call_that_is_sent_again_gets_the_same_lease(rig: Rig) -> None:
    await look(rig)
    assert (await look(rig))[0] == b"lease"


async def test_a_stored_value_is_fresh_for_its_time_and_counts_from_the_lease(rig: Rig) -> None:
    await look(rig)
    rig.clock.go(2)
    assert await end(rig, "store") == [b"OK"]
    assert await look(rig, "b") == [b"fresh", b"1", b"2000000", b""]
    rig.clock.go(8)
    assert await look(rig, "b") == [b"lease", b"1", b"10000000", b""]
    assert await look(rig, "c") == [b"busy", b"1", b"10000000", b""]
    assert (await rig.dump()).mortal == {"cached"}


async def test_the_lease_of_a_dead_reader_ends_and_its_value_comes_too_late(rig: Rig) -> None:
    await look(rig)
    rig.clock.go(5)
    assert (await look(rig, "b"))[0] == b"lease"
    assert await end(rig, "store", "a", "old") == [b"LOST"]
    assert await end(rig, "store", "b", "new") == [b"OK"]
    assert await end(rig, "store", "b", "newer") == [b"LOST"]
    assert (await look(rig))[:2] == [b"fresh", b"new"]


async def test_after_a_failure_nobody_asks_for_a_moment(rig: Rig) -> None:
    await look(rig)
    assert await end(rig, "fail", blob="Down: no") == [b"OK"]
    assert await look(rig, "b") == [b"failed", b"", b"-1", b"Down: no"]
    rig.clock.go(60)
    assert (await look(rig, "b"))[0] == b"lease"


async def test_a_failure_keeps_the_value(rig: Rig) -> None:
    await look(rig)
    await end(rig, "store")
    rig.clock.go(11)
    await look(rig)
    await end(rig, "fail", blob="Down: no")
    assert await look(rig, "b") == [b"failed", b"1", b"11000000", b"Down: no"]
