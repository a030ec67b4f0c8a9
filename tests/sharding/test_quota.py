"""The parts of a limit: they add up, and what was claimed is counted by whoever has it now."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faena.engine.calls.transfer import Claims
from faena.sharding.quota import beyond, part, share_out


@given(st.integers(1, 1000), st.integers(1, 64))
def test_the_parts_of_a_bound_add_up(whole: int, shards: int) -> None:
    parts = [part(whole, shards, shard) for shard in range(shards)]
    assert sum(parts) == whole
    assert max(parts) - min(parts) <= 1
    assert part(whole, shards, shards) == 0


def test_the_oldest_claims_beyond_a_bound_are_owed() -> None:
    claims = [Claims(1, 3), Claims(2, 2), Claims(5, 4)]
    assert beyond(claims, 9) == []
    assert beyond(claims, 8) == [Claims(1, 1)]
    assert beyond(claims, 5) == [Claims(1, 3), Claims(2, 1)]
    assert beyond(claims, 0) == claims


@given(
    st.integers(1, 60),
    st.integers(1, 6),
    st.integers(1, 6),
    st.lists(st.integers(0, 60), min_size=6, max_size=6),
)
def test_a_limit_holds_over_a_change_of_shards(
    whole: int, before: int, after: int, used: list[int]
) -> None:
    """Whatever was claimed at one instant, and whatever is claimed after it."""
    if whole < max(before, after):
        return
    made = [min(used[shard], part(whole, before, shard)) for shard in range(before)]
    owed = [
        claim
        for shard in range(before)
        for claim in beyond(
            [Claims(1, made[shard])] if made[shard] else [], part(whole, after, shard)
        )
    ]
    grown = {
        str(shard): part(whole, after, shard) - part(whole, before, shard) for shard in range(after)
    }
    shared = share_out(owed, {name: room for name, room in grown.items() if room > 0})
    total = sum(made)
    for shard in range(after):
        own = made[shard] if shard < before else 0
        counted = own + sum(claim.number for claim in shared.get(str(shard), []))
        total += max(0, part(whole, after, shard) - counted)
    assert total <= whole
