"""Impossible thresholds, rules and channels are refused with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from faena import Alerts, Chat, Faena, Log, Mail, Rule, Thresholds, Webhook
from faena.errors import ConfigError
from faena.options.thresholds import value_text

MAIL: dict[str, Any] = {"name": "m", "host": "h", "sender": "a@x.org", "to": ["b@x.org"]}


def test_the_defaults_are_those_of_the_seed() -> None:
    bounds, settled = Alerts().bounds, Alerts().settled
    assert bounds["depth"] == (100, 300)
    assert bounds["wait"] == (30_000_000, 120_000_000)
    assert bounds["error_rate"] == (5, 15)
    assert bounds["stalled"] == (5, 20)
    assert bounds["memory"] == (80, 90)
    assert (bounds["backlog"], settled["backlog"].sustained) == ((1_000, None), "5m")
    assert (bounds["utilization"], settled["utilization"].sustained) == ((95, None), "15m")


def test_a_queue_has_bounds_of_its_own() -> None:
    own = Thresholds(depth=(50, 100), wait=("1m", "5m"), error_rate=(None, None)).given
    assert own == {
        "depth": (50, 100),
        "wait": (60_000_000, 300_000_000),
        "error_rate": (None, None),
    }


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Thresholds(depth=(100, 50)), "depth must have a warning below what is critical"),
    (lambda: Thresholds(depth=(50, 50)), "depth must have a warning below what is critical"),
    (lambda: Thresholds(wait=("5m", "1m")), "wait must have a warning below"),
    (lambda: Thresholds(depth=(-1, 5)), r"depth must be bounds above 0 .*, got -1"),
    (lambda: Thresholds(depth=(0, 5)), "depth must be bounds above 0"),
    (lambda: Thresholds(depth=(float("nan"), 5)), "depth must be bounds above 0"),
    (lambda: Thresholds(depth=(True, 5)), "depth must be bounds above 0"),
    (lambda: Thresholds(error_rate=(5, 101)), "error_rate must be bounds above 0 and at most 100"),
    (lambda: Thresholds(wait=(30, 60)), "for seconds, write '30s'"),
    (lambda: Thresholds(depth=5), r"depth must be a pair \(warning, critical\), got 5"),  # type: ignore[arg-type]
    (lambda: Thresholds(dept=(1, 2)), "did you mean 'depth'?"),  # type: ignore[call-arg]
    (lambda: Rule(clear=0), "clear must be a share above 0"),
    (lambda: Rule(clear=1.5), "clear must be a share above 0"),
    (lambda: Rule(sustained="-1s"), "sustained must be"),
    (lambda: Rule(repeat="1s"), "repeat must be a duration from 1m"),
    (lambda: Alerts(rules={"dept": Rule()}), "did you mean 'depth'?"),
    (lambda: Alerts(rules={"depth": Rule(levels=(9, 1))}), "depth must have a warning below"),
    (lambda: Alerts(rules={"budget": Rule(levels=(1, 2))}), "they are the thresholds of Budget"),
    (lambda: Alerts(rules={"depth": 5}), "rule depth must be a Rule, got 5"),  # type: ignore[dict-item]
    (lambda: Alerts(interval="100ms"), "interval must be a duration from 1s to 10m"),
    (lambda: Alerts(channels=["log"]), "channels must be a list of Log"),  # type: ignore[list-item]
    (lambda: Alerts(channels=[Log(), Log()]), "channel log must be declared once"),
    (lambda: Alerts(channels=[Log(rules=["dept"])]), "did you mean 'depth'?"),
    (lambda: Log(severity="bad"), "severity must be 'warning' or 'critical'"),  # type: ignore[arg-type]
    (lambda: Log(name="a b"), "channel must be 1 to 64"),
    (lambda: Log(subjects=["a*b"]), "subjects must be a list of names, which may end in"),
    (lambda: Webhook(name="w", url="http://x.org"), "with the scheme https"),
    (lambda: Webhook(name="w", url="https://u:p@x.org"), "without a user"),
    (lambda: Webhook(name="w", url="https://x.org", secret="short"), "at least 16 characters"),
    (lambda: Chat(name="c", url="ftp://x.org"), "with the scheme https"),
    (lambda: Chat(name="c", url="https://x.org/a b"), "with the scheme https"),
    (lambda: Mail(**{**MAIL, "to": []}), "to must be a list of mail addresses"),
    (lambda: Mail(**{**MAIL, "to": ["b@x.org\r\nBcc: c@x.org"]}), "to must be a mail address"),
    (lambda: Mail(**{**MAIL, "sender": "nobody"}), "sender must be a mail address"),
    (lambda: Mail(**MAIL, tls="none", user="u"), "the password would be sent in the open"),
    (lambda: Mail(**MAIL, port=0), "port must be a whole number from 1"),
    (lambda: Faena("x", alerts=True), "alerts must be a Alerts, got True"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_what_is_impossible_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()


def test_an_error_never_shows_a_url_or_a_secret() -> None:
    for make in (
        lambda: Webhook(name="w", url="http://x.org/token-in-here"),
        lambda: Webhook(name="w", url="https://x.org", secret="token-in-here"),
    ):
        with pytest.raises(ConfigError) as refused:
            make()
        assert "token" not in str(refused.value)


def test_the_queue_of_notices_is_declared_with_the_alerts_only() -> None:
    assert list(Faena("a").queues) == []
    app = Faena("a", alerts=Alerts())
    assert list(app.queues) == ["alerts"]
    with pytest.raises(ConfigError, match="declared twice"):
        app.queue("alerts")


def test_values_are_told_in_their_units() -> None:
    assert value_text("wait", 61_400_000) == "1m 1s"
    assert value_text("error_rate", 12.34) == "12.3 %"
    assert value_text("depth", 300) == "300"
