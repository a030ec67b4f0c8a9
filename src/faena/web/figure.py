"""Numbers, times and amounts as a page shows them, in the language of its reader."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from faena.values.money import Money, amount_text
from faena.web.words import Speaker

NONE: Final = "\N{EN DASH}"
"""Where there is no number."""
_SWAPPED: Final = str.maketrans(",.", ".,")
_S: Final = 1_000_000
_MINUTE: Final = 60 * _S
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


class Figures:
    """Writes figures for one reader."""

    def __init__(self, say: Speaker) -> None:
        self._say = say
        self._is_english = say.language == "en"

    def number(self, value: float | None, places: int = 0) -> str:
        """1,284 and 0.4; 1.284 and 0,4."""
        if value is None or not math.isfinite(value):
            return NONE
        text = f"{value:,.{places}f}"
        return text if self._is_english else text.translate(_SWAPPED)

    def rough(self, value: float | None) -> str:
        """A number with as many places as it needs: 0.42, 7.3, 58, 1,284."""
        if value is None:
            return NONE
        size = abs(value)
        return self.number(value, 0 if size >= 10 or value == int(value) else 1 if size >= 1 else 2)

    def percent(self, part: float | None, places: int = 1) -> str:
        """A part of one as 0.4 %."""
        if part is None:
            return NONE
        hundredths = part * 100
        return f"{self.number(hundredths, 0 if hundredths in {0, 100} else places)} %"

    def money(self, amount: Money | None) -> str:
        """An amount: 1,284.50 USD, 1.284,50 USD."""
        if amount is None:
            return NONE
        text, _, currency = amount_text(amount, thousands=",").rpartition(" ")
        return f"{text if self._is_english else text.translate(_SWAPPED)} {currency}"

    def duration(self, us: float | None) -> str:
        """How long something takes: 820 ms, 38 s, 3 min 50 s, 26 min, 2 h 5 min, 3 d."""
        if us is None:
            return NONE
        size = max(0.0, us)
        if size < 1_000:
            return f"{self.rough(size)} µs" if size else "0 s"
        if size < _S:
            return f"{self.rough(size / 1_000)} ms"
        if size < 10 * _S:
            return f"{self.rough(size / _S)} s"
        for unit, word, below, small in (
            (_DAY, "d", _HOUR, "h"),
            (_HOUR, "h", _MINUTE, "min"),
            (_MINUTE, "min", _S, "s"),
        ):
            if size >= unit:
                whole, rest = divmod(round(size / below), unit // below)
                # What is large needs no small part: 26 min, not 26 min 4 s.
                is_small = rest and whole < 10
                return f"{whole} {word} {rest} {small}" if is_small else f"{whole} {word}"
        return f"{round(size / _S)} s"

    def instant(self, us: float | None) -> str:
        """An instant in UTC, as a title has it."""
        if not us:
            return NONE
        return f"{datetime.fromtimestamp(us / _S, UTC):%Y-%m-%d %H:%M:%S} UTC"

    def clock(self, us: float) -> str:
        """The time of day, in UTC."""
        return f"{datetime.fromtimestamp(us / _S, UTC):%H:%M:%S}"

    def machine_instant(self, us: float) -> str:
        """The same for `datetime=`."""
        return datetime.fromtimestamp(us / _S, UTC).isoformat(timespec="milliseconds")

    def ago(self, us: float | None, now_us: float) -> str:
        """How long ago: 26 min ago; of what is to come, in 38 s."""
        if us is None:
            return NONE
        if us > now_us:
            return self._say("in {time}", time=self.duration(us - now_us))
        return self._say("{time} ago", time=self.duration(now_us - us))
