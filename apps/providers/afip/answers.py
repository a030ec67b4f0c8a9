"""What AFIP answers, typed. Amounts are whole cents, a CAE is text: it may begin with a zero."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Remark:
    """An error, an observation or an event: a code, and AFIP's text."""

    code: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """What FEDummy says of the parts of the service."""

    application: str
    database: str
    authentication: str

    @property
    def is_ok(self) -> bool:
        """Whether all of them are."""
        return {self.application, self.database, self.authentication} == {"OK"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorized:
    """The voucher has a CAE. Observations are no errors: the CAE is valid."""

    cae: str
    expires_on: date
    number: int
    observations: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A voucher as AFIP has it on record."""

    point_of_sale: int
    kind: int
    first_number: int
    last_number: int
    """Differs from the first only in batches of class B."""
    date: date
    concept: int
    document_kind: int
    document_number: int
    total_cents: int
    untaxed_cents: int
    net_cents: int
    exempt_cents: int
    tributes_cents: int
    vat_cents: int
    currency: str
    code: str
    """The CAE, or the CAEA where `emission` says so."""
    emission: str
    expires_on: date
    observations: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotIssued:
    """AFIP has no voucher of this number."""

    number: int
    last_number: int
    """The last one of the series."""

    @property
    def is_next(self) -> bool:
        """Whether the same number can be asked for again."""
        return self.number == self.last_number + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Different:
    """The number belongs to another voucher: take a new one."""

    issued: Issued
    differences: tuple[str, ...]
    """The fields that are not those of the voucher."""
