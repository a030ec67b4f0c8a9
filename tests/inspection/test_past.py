"""Pages of the broker's jobs and of past ones: each job once, and an end (G20)."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from faena.engine.calls.deadletter import Position
from faena.inspection.past import Wanted, merged
from faena.job import JobView
from faena.states import State
from tests._support.search import searching

INSTANTS = st.integers(1, 4)
IDS = st.sampled_from([f"j{number}" for number in range(8)])


def job(name: str, finished_at: int, source: str) -> JobView:
    return JobView(
        id=name,
        queue="q",
        state=State.DEAD,
        task="t",
        source=source,  # type: ignore[arg-type]
        payload=msgspec.Raw(b"1"),
        tenant=None,
        key=None,
        priority=1,  # type: ignore[arg-type]
        headers={},
        attempts_made=1,
        losses=0,
        enqueued_at=None,  # type: ignore[arg-type]
        due_at=None,
        lease_until=None,
        started_at=None,
        worker=None,  # type: ignore[arg-type]
        finished_at=finished_at,
        is_stopping=False,
        result=None,
        errors=(),  # type: ignore[arg-type]
        progress=None,
        log=(),
        origin=name,  # type: ignore[arg-type]
    )


def place(one: JobView) -> Position:
    return Position(str(one.finished_at), one.id)


def behind(jobs: list[JobView], wanted: Wanted) -> list[JobView]:
    """As a source pages: in order, behind a position, so many at most."""
    after, is_reverse = wanted.after, wanted.is_newest_first
    ranked = sorted(jobs, key=lambda one: place(one).key(), reverse=is_reverse)
    if after.id:
        ranked = [
            one
            for one in ranked
            if (place(one).key() < after.key() if is_reverse else place(one).key() > after.key())
        ]
    return ranked[: wanted.limit]


@given(
    live=st.dictionaries(IDS, INSTANTS),
    past=st.dictionaries(IDS, INSTANTS),
    elsewhere=st.sets(IDS),
    limit=st.integers(1, 5),
    is_newest_first=st.booleans(),
)
@searching(150)
def test_all_pages_together_show_each_job_once(
    live: dict[str, int],
    past: dict[str, int],
    elsewhere: set[str],
    limit: int,
    is_newest_first: bool,
) -> None:
    """`elsewhere` are past jobs that the broker has in another state."""
    own = [job(name, at, "broker") for name, at in live.items()]
    gone = [job(name, at, "history") for name, at in past.items()]
    known = {(name, None) for name in {*live} | elsewhere}
    shown: list[JobView] = []
    after: Position | None = Position()
    for _ in range(40):
        assert after is not None
        wanted = Wanted("q", State.DEAD, limit, after, is_newest_first)
        some = behind(own, wanted)
        places = [place(one) for one in some]
        page, after = merged(wanted, places, some, behind(gone, wanted), known)
        shown += page
        if after is None:
            break
    assert after is None, "no end"
    expected = own + [one for one in gone if (one.id, None) not in known]
    keys = [place(one).key() for one in shown]
    assert keys == sorted(keys, reverse=is_newest_first)
    assert sorted(one.id for one in shown) == sorted(one.id for one in expected)
    assert {one.id: one.source for one in shown} == {one.id: one.source for one in expected}
