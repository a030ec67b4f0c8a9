"""Lines of charts, as paths."""

from __future__ import annotations

from faena.web.curve import line, parts, spark, top


def test_a_line_has_gaps_where_nothing_was_measured() -> None:
    path = line([1.0, 2.0, None, 2.0, 1.0], 2.0, width=400, height=102)
    assert path == "M0,51L100,1M300,1L400,51"


def test_a_value_between_gaps_is_seen() -> None:
    assert line([None, 2.0, None], 2.0, width=400, height=102) == "M197,1h6"
    assert line([None, None, 2.0], 2.0, width=400, height=102) == "M397,1h6"


def test_the_top_of_a_chart_is_a_round_number() -> None:
    assert [top([one], 1.0) for one in (0.2, 3.0, 7.0, 70.0)] == [1.0, 5.0, 10.0, 100.0]
    assert top([None], 2.0) == 2.0


def test_parts_of_a_bar_fill_it_in_order() -> None:
    assert parts([("ready", 3), ("delayed", 0), ("running", 1)], 4) == [
        ("ready", 0.0, 75.0),
        ("running", 75.0, 25.0),
    ]
    assert parts([("ready", 1)], 100) == [("ready", 0.0, 10.0)]
    assert parts([], 4) == []


def test_a_spark_of_nothing_is_empty() -> None:
    assert spark([]) == ""
    assert spark([0.0, 1.0]).startswith("M-9,40V22L0,22 100,2L109,2V40")
