"""The vouchers that have a CAE, and the numbers of each series.

A series is a CUIT, a point of sale and a kind. Its numbers have no gaps and no repetitions, and its
days never go back. Nothing here waits, so that requests that come at once are served one by one.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from apps.sandbox.afip.detail import Detail

_LIFE: Final = timedelta(days=10)


class Series(NamedTuple):
    """What numbers belong to."""

    cuit: int
    point_of_sale: int
    kind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An authorised voucher; one record for a batch of class B."""

    series: Series
    detail: Detail
    date: date
    cae: str
    observations: tuple[int, ...]
    processed_at: datetime

    @property
    def expires_on(self) -> date:
        """Of the CAE."""
        return self.date + _LIFE

    @property
    def subject(self) -> str:
        """As the ledger names it."""
        return subject_of(self.series, self.detail.first)


class Register:
    """All of them."""

    def __init__(self) -> None:
        self._series: dict[Series, list[Record]] = {}
        self._codes: set[str] = set()

    @property
    def records(self) -> list[Record]:
        """All that have a CAE, by series and number."""
        return [one for records in self._series.values() for one in records]

    def last_number(self, series: Series) -> int:
        """0 if there is none."""
        records = self._series.get(series)
        return records[-1].detail.last if records else 0

    def is_next(self, series: Series, number: int, day: date) -> bool:
        """Whether a voucher may come now."""
        records = self._series.get(series)
        if not records:
            return number == 1
        return number == records[-1].detail.last + 1 and day >= records[-1].date

    def find(self, series: Series, number: int) -> Record | None:
        """The voucher of a number."""
        records = self._series.get(series, [])
        at = bisect_left(records, number, key=lambda one: one.detail.last)
        is_found = at < len(records) and records[at].detail.first <= number
        return records[at] if is_found else None

    def add(
        self, series: Series, detail: Detail, day: date, observations: list[int], now: datetime
    ) -> Record:
        """Give it a CAE; it must be the next one."""
        if not self.is_next(series, detail.first, day):
            raise ValueError(f"{subject_of(series, detail.first)} is not the next voucher")
        record = Record(
            series=series,
            detail=detail,
            date=day,
            cae=self._new_code(now),
            observations=tuple(observations),
            processed_at=now,
        )
        self._series.setdefault(series, []).append(record)
        return record

    def _new_code(self, now: datetime) -> str:
        """Fourteen digits that begin like the real ones."""
        while True:
            code = f"7{now.year % 10}{now.isocalendar().week:02d}{secrets.randbelow(10**10):010d}"
            if code not in self._codes:
                self._codes.add(code)
                return code


def subject_of(series: Series, number: int) -> str:
    """`CUIT/PtoVta/CbteTipo/Nro`."""
    return f"{series.cuit}/{series.point_of_sale}/{series.kind}/{number}"
