"""When a schedule fires, in plain words."""

from __future__ import annotations

import re
from typing import Any, Final

from faena.scheduling.options import iso
from faena.scheduling.recurrence import NAMED
from faena.web.figure import Figures
from faena.web.words import Speaker

_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_SHORT: Final = {name[:3].upper(): at for at, name in enumerate(_DAYS)}
_STEP: Final = re.compile(r"\*/(\d{1,2})")
_FIVE: Final = 5
_SHOWN: Final = 3


def recurrence(terms: dict[str, Any], say: Speaker) -> str:
    """Such as "every day at 02:00 UTC"; an expression that is not plain is shown as it is."""
    ((kind, value),) = terms["when"].items()
    if kind == "every":
        return say("every {time}", time=Figures(say).duration(value))
    if kind == "at":
        shown = ", ".join(map(iso, value[:_SHOWN]))
        return say("once, at {times}", times=f"{shown}{' …' if len(value) > _SHOWN else ''}")
    text: str = NAMED.get(value.strip()) or value
    fields = text.split()
    if len(fields) == _FIVE + 1 and fields[0] == "0":
        fields = fields[1:]
    plain = _cron(fields, say) if len(fields) == _FIVE else None
    return f"{plain or say('by the expression {text}', text=value)} {terms['tz']}"


def _cron(fields: list[str], say: Speaker) -> str | None:
    """The plain ones: at minutes of hours, at a time of days, of weekdays, or of a day a month."""
    minute, hour, day, month, weekday = fields
    if month != "*" or "*" not in {day, weekday}:
        return None
    if day == weekday == "*" and not hour.isdecimal():
        return _of_hours(minute, hour, say)
    if not (minute.isdecimal() and hour.isdecimal()):
        return None
    time = f"{int(hour):02}:{int(minute):02}"
    if weekday != "*":
        return _of_weekdays(weekday.upper(), time, say)
    return _of_month(day, time, say)


def _of_hours(minute: str, hour: str, say: Speaker) -> str | None:
    step = _STEP.fullmatch(hour)
    if hour == "*":
        return _within_hours(minute, say)
    if step is None or not minute.isdecimal() or not int(step[1]) or 24 % int(step[1]):
        return None
    words = "every {n} hours, at minute {minute}"
    return say(words, n=int(step[1]), minute=f"{int(minute):02}")


def _of_weekdays(weekday: str, time: str, say: Speaker) -> str | None:
    if weekday in {"1-5", "MON-FRI"}:
        return say("from Monday to Friday at {time}", time=time)
    days = [_day_of(one) for one in weekday.split(",")]
    names = [say(_DAYS[one]) for one in days if one is not None]
    if len(names) < len(days):
        return None
    return say("every {days} at {time}", days=", ".join(names), time=time)


def _of_month(day: str, time: str, say: Speaker) -> str | None:
    if day == "*":
        return say("every day at {time}", time=time)
    if day == "L":
        return say("on the last day of every month at {time}", time=time)
    words = "on day {day} of every month at {time}"
    return say(words, day=int(day), time=time) if day.isdecimal() else None


def _within_hours(minute: str, say: Speaker) -> str | None:
    step = _STEP.fullmatch(minute)
    if minute == "*" or (step and step[1] == "1"):
        return say("every minute")
    if step and int(step[1]) and 60 % int(step[1]) == 0:
        return say("every {n} minutes", n=int(step[1]))
    if minute.isdecimal():
        return say("every hour, at minute {minute}", minute=f"{int(minute):02}")
    return None


def _day_of(text: str) -> int | None:
    if text.isdecimal() and int(text) <= len(_DAYS):
        return int(text) % len(_DAYS)
    return _SHORT.get(text)
