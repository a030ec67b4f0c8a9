"""What operators see of alerts, and a model of how levels change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faena.engine.calls.alerts import LEVELS
from tests._support.alert_model import AlertModel
from tests._support.alert_rig import INTERVAL_S, AlertRig, reading
from tests._support.rig import SECOND
from tests._support.search import searching


async def test_critical_ones_come_first_and_only_so_many_changes(alerts: AlertRig) -> None:
    await alerts.judge(reading(60), reading(200, subject="print"))
    view = await alerts.look()
    assert [(one.subject, one.severity) for one in view.firing] == [
        ("print", "critical"),
        ("mail", "warning"),
    ]
    assert view.at == alerts.clock.now
    assert len((await alerts.calls.look(1)).history) == 1
    assert (await alerts.calls.look(0)).history == []


async def test_nothing_is_there_before_the_first_evaluation(alerts: AlertRig) -> None:
    view = await alerts.look()
    assert (view.firing, view.pending, view.silences, view.history, view.undelivered) == (
        *((), (), (), ()),
        0,
    )


values = st.lists(
    st.tuples(st.sampled_from([0, 39, 40, 45, 50, 79, 80, 99, 100, 500]), st.integers(0, 3)),
    min_size=1,
    max_size=25,
)
delays = st.sampled_from([0, 1, 2])


@searching(40)
@given(values=values, sustained=delays, clear_after=delays)
async def test_levels_are_those_of_the_model(
    alerts: AlertRig, values: list[tuple[int, int]], sustained: int, clear_after: int
) -> None:
    """Whatever is told adds up to the level: nothing is told twice, nothing is left out."""
    await alerts.clear()
    terms = {
        "sustained_us": sustained * INTERVAL_S * SECOND,
        "clear_after_us": clear_after * INTERVAL_S * SECOND,
    }
    model, told = AlertModel(**terms), 0
    for value, pause in values:
        alerts.clock.go(pause * INTERVAL_S)
        notices = await alerts.judge(reading(value, **terms))
        expected = model.judge(value, alerts.clock.now)
        assert await alerts.level() == LEVELS[expected]
        kinds = {change.kind for one in notices.values() for change in one.changes}
        assert kinds == model.kinds(told, expected)
        told = expected
