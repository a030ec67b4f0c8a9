"""Advice and replays in the words of a reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from faena.telemetry.advice.queue_advice import QueueAdvice
from faena.telemetry.advice.replay import Replay, WhatIf
from faena.web.curve import line, top
from faena.web.figure import NONE, Figures
from faena.web.words import Speaker

_KINDS: Final = {"critical": "crit", "warning": "warn", "healthy": "ok"}
_PEAK: Final = 1.5
_UNEVEN: Final = 1.5
_MARKS: Final = 5
_LEAST_S: Final = 0.001


class Row(NamedTuple):
    """The advice for one queue."""

    queue: str
    kind: str
    arrivals: str
    run: str
    wait: str
    slots: str
    used: str
    width: float
    right: str
    goal: str
    says: str
    words: Sequence[str]


class Pair(NamedTuple):
    """A figure as it is and as it would be, drawn to the same scale."""

    name: str
    now: str
    then: str
    now_width: float
    then_width: float


class Replayed(NamedTuple):
    """A replay."""

    words: Sequence[str]
    pairs: Sequence[Pair]
    now: str
    then: str
    goal: str
    y: Sequence[str]
    x: Sequence[str]
    label: str
    tenants: Sequence[tuple[str, str, str]]


def told(one: QueueAdvice, say: Speaker) -> Row:
    """The advice for a queue."""
    write, words = Figures(say), [*Words(say).advice(one)]
    used = one.utilization
    return Row(
        queue=one.queue,
        kind=_KINDS[one.status],
        arrivals=Words(say).rate(one.arrival_rate),
        run=_duration(one.service_s, write),
        wait=write.duration(one.wait.p95_us),
        slots=write.number(one.slots),
        used=write.percent(used, 0),
        width=round(min(100.0, 100 * (used or 0.0)), 1),
        right=NONE if one.recommended_slots is None else write.number(one.recommended_slots),
        goal=NONE if one.objective_slots is None else write.number(one.objective_slots),
        says=" ".join(words[: 1 if one.has_workers else 2]),
        words=words,
    )


def _duration(seconds: float | None, write: Figures) -> str:
    return write.duration(None if seconds is None else seconds * 1e6)


class Words:
    """Sentences for one reader."""

    def __init__(self, say: Speaker) -> None:
        self._say, self._write = say, Figures(say)

    def rate(self, per_second: float | None) -> str:
        """Jobs for each second, minute or hour, so that it is a number above one."""
        if per_second is None:
            return NONE
        for size, unit in ((1, "s"), (60, "min")):
            if per_second * size >= 1:
                return f"{self._write.rough(per_second * size)} / {unit}"
        return f"{self._write.rough(per_second * 3600)} / h"

    def summary(self, found: Sequence[QueueAdvice], number: int) -> str:
        """Which queue wants slots most, or that none does."""
        say = self._say
        short = [one for one in found if one.status != "healthy"]
        if len(found) < number:
            return say("{n} of {all} queues have been looked at.", n=len(found), all=number)
        if not short:
            return say("All {n} queues have slots enough for what comes.", n=number)
        first = f"{short[0].queue}: {told(short[0], say).says}"
        if len(short) == 1:
            return first
        return f"{first} {say('{n} more {n|needs|need} attention.', n=len(short) - 1)}"

    def advice(self, one: QueueAdvice) -> Iterator[str]:
        """What was found and what to do about it, the most important first."""
        say, write = self._say, self._write
        if not one.has_workers:
            yield say("No worker serves it now; this is for one process.")
        if one.arrival_rate is None or one.utilization is None:
            yield say("No attempt has ended in the window: there is nothing to advise from.")
            return
        if not one.is_enough:
            yield say(
                "Only {n} {n|attempt|attempts} began, too few to advise from: "
                "take a longer window.",
                n=one.count,
            )
            return
        yield self._recommended(one)
        if one.limit_rate is not None and one.arrival_rate > one.limit_rate:
            yield say(
                "Limits let {limit} begin and {rate} come: more slots would not help.",
                limit=self.rate(one.limit_rate),
                rate=self.rate(one.arrival_rate),
            )
        yield self._objective(one)
        if one.peak_rate is not None and one.peak_rate >= _PEAK * one.arrival_rate:
            yield say(
                "At the busiest {rate} came, for which {n} {n|slot|slots} would be right.",
                rate=self.rate(one.peak_rate),
                n=one.peak_slots or 1,
            )
        if (one.variability or 1.0) >= _UNEVEN:
            yield say(
                "Run times differ much (p99 {time}): long jobs are better in a queue of their own.",
                time=write.duration(one.run.p99_us),
            )

    def _recommended(self, one: QueueAdvice) -> str:
        say, wanted, slots = self._say, one.recommended_slots or 1, one.slots
        if (one.utilization or 0.0) >= 1:
            words = "{slots} {slots|slot|slots} cannot keep up: {n} would be right."
            return say(words, slots=slots, n=wanted)
        if wanted > slots:
            words = "{n} {n|slot|slots} would be right, {more} more than now."
            return say(words, n=wanted, more=wanted - slots)
        if wanted < slots:
            words = "{n} {n|slot|slots} would be enough: {spare} to spare."
            return say(words, n=wanted, spare=slots - wanted)
        return say("{n} {n|slot is|slots are} right.", n=slots)

    def _objective(self, one: QueueAdvice) -> str:
        say, goal = self._say, _duration(one.objective_s, self._write)
        if one.objective_slots is None:
            return say("No number of slots keeps waits below {time}.", time=goal)
        if one.predicted_wait_s is None:
            return say(
                "Waits grow without end; the objective of {time} needs {n} {n|slot|slots}.",
                time=goal,
                n=one.objective_slots,
            )
        return say(
            "5 % of jobs wait longer than {wait}; the objective of {time} needs {n} "
            "{n|slot|slots}.",
            wait=_duration(one.predicted_wait_s, self._write),
            time=goal,
            n=one.objective_slots,
        )

    # -- replays ----------------------------------------------------------------------------------

    def replay(self, found: WhatIf) -> Iterator[str]:
        """What would be otherwise."""
        say, write, before, after = self._say, self._write, found.before, found.after
        if before is None or after is None:
            yield say("Nothing came in the window, or no attempt has ended: nothing to replay.")
            return
        yield say(
            "With {n} {n|slot|slots}, 5 % of jobs would wait longer than {then}, instead of {now}.",
            n=after.slots,
            then=_duration(after.wait_p95_s, write),
            now=_duration(before.wait_p95_s, write),
        )
        yield say(
            "{then} of slots would be in use, instead of {now}.",
            then=write.percent(after.utilization, 0),
            now=write.percent(before.utilization, 0),
        )
        yield self._met(found, before, after)
        if after.ended_late_s > max(1.0, before.ended_late_s):
            yield say(
                "The last job would end {time} after the window: this does not keep up.",
                time=_duration(after.ended_late_s, write),
            )
        yield self._known(found)

    def _met(self, found: WhatIf, before: Replay, after: Replay) -> str:
        goal, say = found.objective_s, self._say
        was, would = before.wait_p95_s <= goal, after.wait_p95_s <= goal
        time = _duration(goal, self._write)
        if was == would:
            return say(
                "The objective of {time} is met either way."
                if would
                else "The objective of {time} is not met either way.",
                time=time,
            )
        return say(
            "The objective of {time} would be met, unlike now."
            if would
            else "The objective of {time} would be missed, unlike now.",
            time=time,
        )

    def _known(self, found: WhatIf) -> str:
        return self._say(
            "{jobs} {n|job|jobs} replayed, {exact} at their exact instants, the others spread "
            "within their minutes; workers measured a p95 of {time}.",
            n=found.jobs,
            jobs=self._write.number(found.jobs),
            exact=self._write.number(found.exact),
            time=self._write.duration(found.measured.p95_us),
        )


def replayed(found: WhatIf, say: Speaker) -> Replayed:
    """A replay, as sentences and as a picture."""
    words, write = [*Words(say).replay(found)], Figures(say)
    before, after = found.before, found.after
    if before is None or after is None:
        return Replayed(words, (), "", "", "", (), (), "", ())
    courses = (*before.wait_p95_course, *after.wait_p95_course)
    most = top(courses, _LEAST_S)
    goal = found.objective_s
    return Replayed(
        words=words,
        pairs=_pairs(before, after, say),
        now=line(before.wait_p95_course, most),
        then=line(after.wait_p95_course, most),
        goal=f"M0,{138 * (1 - goal / most) + 1:.4g}h600" if goal <= most else "",
        y=[_duration(most, write), _duration(most / 2, write), "0"],
        x=_marks(found),
        label=say(
            "p95 of waits through the window: up to {now} now, up to {then} then",
            now=_duration(max(before.wait_p95_course), write),
            then=_duration(max(after.wait_p95_course), write),
        ),
        tenants=[
            (name, _duration(before.tenants.get(name), write), _duration(wait, write))
            for name, wait in after.tenants.items()
        ],
    )


def _pairs(before: Replay, after: Replay, say: Speaker) -> list[Pair]:
    write = Figures(say)
    longest = max(before.wait_p99_s, after.wait_p99_s) or 1.0
    found = [
        Pair(
            name=say("Wait {name}", name=name),
            now=_duration(now, write),
            then=_duration(then, write),
            now_width=round(100 * now / longest, 1),
            then_width=round(100 * then / longest, 1),
        )
        for name, now, then in (
            ("p50", before.wait_p50_s, after.wait_p50_s),
            ("p95", before.wait_p95_s, after.wait_p95_s),
            ("p99", before.wait_p99_s, after.wait_p99_s),
        )
    ]
    found.append(
        Pair(
            name=say("Slots in use"),
            now=f"{write.percent(before.utilization, 0)} / {write.number(before.slots)}",
            then=f"{write.percent(after.utilization, 0)} / {write.number(after.slots)}",
            now_width=round(min(100.0, 100 * before.utilization), 1),
            then_width=round(min(100.0, 100 * after.utilization), 1),
        )
    )
    return found


def _marks(found: WhatIf) -> list[str]:
    span = found.until - found.since
    return [
        f"{datetime.fromtimestamp((found.since + span * at / (_MARKS - 1)) / 1e6, UTC):%H:%M}"
        for at in range(_MARKS)
    ]
