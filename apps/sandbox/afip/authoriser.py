"""Judges requests for CAEs: the head, then the vouchers one by one, up to the first refusal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from functools import partial

from apps.sandbox.afip.access_request import ARGENTINA
from apps.sandbox.afip.case import Case
from apps.sandbox.afip.classes import class_of
from apps.sandbox.afip.detail import AssociatedLine, Detail
from apps.sandbox.afip.register import Record, Register, Series
from apps.sandbox.afip.registry import Registry
from apps.sandbox.afip.rules import Head, head_problems, number_problems, remarks
from apps.sandbox.afip.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of one voucher."""

    detail: Detail
    record: Record | None = None
    """None: it was refused, or came after one that was."""
    observations: tuple[int, ...] = ()
    """Why it was refused, or what was remarked all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a request."""

    series: Series
    count: int
    errors: tuple[int, ...] = ()
    vouchers: tuple[Judged, ...] = ()

    @property
    def records(self) -> list[Record]:
        """Those that have a CAE now."""
        return [one.record for one in self.vouchers if one.record is not None]

    @property
    def result(self) -> str:
        """All approved, partly, or all rejected."""
        if not self.records:
            return "R"
        return "A" if len(self.records) == len(self.vouchers) else "P"


class Authoriser:
    """Gives CAEs."""

    def __init__(self, registry: Registry, register: Register, terms: Terms) -> None:
        self._registry, self._register, self._terms = registry, register, terms

    def judge(self, cuit: int, head: Head, details: list[Detail], now: datetime) -> Verdict:
        """Give CAEs to the vouchers that are in order."""
        series = Series(cuit, head.point_of_sale, head.kind)
        problems = head_problems(head, self._registry.businesses.get(cuit), self._terms)
        if errors := tuple(problems):
            return Verdict(series=series, count=head.count, errors=errors)
        vouchers: list[Judged] = []
        errors: tuple[int, ...] = ()
        for detail in details:
            if vouchers and vouchers[-1].record is None:
                vouchers.append(Judged(detail=detail))
                continue
            judged, errors = self._judge_one(series, detail, now)
            vouchers.append(judged)
        return Verdict(series=series, count=head.count, errors=errors, vouchers=tuple(vouchers))

    def _judge_one(
        self, series: Series, detail: Detail, now: datetime
    ) -> tuple[Judged, tuple[int, ...]]:
        """One voucher, and the errors of the request that come of it: a number that is not the
        next one is told there, all else with the voucher."""
        case = self._case(series, detail, now.astimezone(ARGENTINA).date())
        day = case.date or case.today
        if wrong := tuple(number_problems(case)):
            return Judged(detail=detail, observations=wrong), ()
        if not self._register.is_next(series, detail.first, day):
            return Judged(detail=detail), (10016,)
        excluding, observed = remarks(case)
        if excluding:
            return Judged(detail=detail, observations=(*excluding, *observed)), ()
        record = self._register.add(series, detail, day, observed, now)
        return Judged(detail=detail, record=record, observations=tuple(observed)), ()

    def _case(self, series: Series, detail: Detail, today: date) -> Case:
        letter = class_of(series.kind)
        if letter is None:
            raise ValueError(f"kind must be known, got {series.kind}")
        return Case(
            issuer=series.cuit,
            kind=series.kind,
            letter=letter,
            detail=detail,
            today=today,
            terms=self._terms,
            receiver_remarks=self._registry.remarks.get(detail.document_number, ()),
            find=partial(self._find, series.cuit),
        )

    def _find(self, issuer: int, line: AssociatedLine) -> Detail | None:
        cuit = int(line.cuit) if line.cuit and line.cuit.isdigit() else issuer
        record = self._register.find(Series(cuit, line.point_of_sale, line.kind), line.number)
        return None if record is None else record.detail
