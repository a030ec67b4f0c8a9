"""The names of events are those that the scripts record, and those of the page."""

from __future__ import annotations

import re
from pathlib import Path

from faena.telemetry.kinds import NAMES, table

ROOT = Path(__file__).resolve().parents[2]
LUA = ROOT / "src" / "faena" / "engine" / "lua"

BY_EXPRESSION = {
    "state": {"completed", "dead", "cancelled"},
    "name": {"dead_surge", "dead_many", "dead_old"},
    "'upstream_' .. state": {
        *("upstream_open", "upstream_half_open", "upstream_recovering", "upstream_closed"),
    },
    "'feature_' .. state": {"feature_healthy", "feature_degraded", "feature_offline"},
    "'alert_' .. kind": {
        *("alert_firing", "alert_escalated", "alert_eased", "alert_resolved"),
    },
    "'level_' .. to": {"level_on", "level_off"},
    "kind .. '_forgotten'": {"feature_forgotten", "level_forgotten"},
    "'dead_' .. status": {"dead_discarded", "dead_resolved"},
    "'flow_' .. state": {"flow_completed", "flow_failed", "flow_cancelled"},
    "mode == 'edit' and 'configured' or 'reset'": {"configured", "reset"},
    "record == '' and 'schedule_removed' or 'schedule_changed'": {
        "schedule_removed",
        "schedule_changed",
    },
    "outcome == 'CREATED' and 'schedule_fired' or 'schedule_skipped'": {
        "schedule_fired",
        "schedule_skipped",
    },
}
"""What a script records under a name that it puts together."""


def recorded() -> set[str]:
    names: set[str] = set()
    for path in sorted(LUA.rglob("*.lua")):
        for line in path.read_text().splitlines():
            found = re.match(
                r"\s*(?:record_(?:event|action)|tell_(?:upstream|feature|alert_event|silence))"
                r"\((.+?), ",
                line,
            )
            if found:
                said = re.fullmatch(r"'(\w+)'", found[1])
                names |= {said[1]} if said else BY_EXPRESSION[found[1]]
    return names


def test_every_event_that_a_script_records_has_a_name_and_the_reverse() -> None:
    assert recorded() == set(NAMES) - {"gap"}


def test_the_page_shows_the_table() -> None:
    assert table() in (ROOT / "docs" / "events.md").read_text()
