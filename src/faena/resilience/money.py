"""What calls cost and how much may be spent: prices and budgets, in whole millionths of a currency.

Amounts are written as text, because 0.1 is no exact float: "0.01 USD". A price may change from a
date on. What one call costs is rounded up, so a sum is never less than the bill.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, Literal

from faena.errors import ConfigError, nearest, shown
from faena.options.fields import check_choice, check_is, derive
from faena.values.keywords import known_fields
from faena.values.money import Money
from faena.values.names import check_name
from faena.values.numbers import check_real, check_whole, keep_whole

_AMOUNT: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ([A-Z]{3})")
_MOST: Final = 10**15

_log = logging.getLogger("faena.resilience")

TOTALS: Final = "$"
"""The name under which budgets of all upstreams are declared; no upstream can have it."""
_CODES: Final = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN
    BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD
    FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY
    KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP
    MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR
    RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT
    TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR
    ZMW ZWL
"""


def today() -> date:
    """The day, in UTC."""
    return datetime.now(UTC).date()


def read_money(what: str, given: Any) -> Money:
    """An amount such as "0.01 USD"."""
    match = _AMOUNT.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise ConfigError(
            f"{what} must be an amount such as '0.01 USD', got {shown(given)}",
            field=what,
            value=given,
        )
    if match[2] not in _CODES.split():
        raise ConfigError(
            f"{what} must be in a currency of ISO 4217 such as USD, got {match[2]}",
            field=what,
            value=given,
        )
    micro = Decimal(match[1]).scaleb(6)
    if micro > _MOST:
        most = Money(_MOST, match[2])
        raise ConfigError(f"{what} must be at most {most}, got {given}", field=what, value=given)
    if micro != int(micro):
        hint = ": give the price of more units, as in Price('token', '0.5 USD', per=1_000_000)"
        raise ConfigError(
            f"{what} must be a whole number of millionths, got {given}"
            f"{hint if what == 'price amount' else ''}",
            field=what,
            value=given,
        )
    return Money(int(micro), match[2])


@known_fields("price")
@dataclass(frozen=True, slots=True)
class Price:
    """What something costs: `Price("gpt-4.input", "0.03 USD", per=1000, since="2024-01-01")`."""

    item: str
    """What is paid for. "call" is paid with each call, if nothing else is said."""

    amount: str
    """The price of `per` units."""

    per: int = 1
    """How many units it is for."""

    since: date | str | None = None
    """The first day on which it holds, in UTC; None: always."""

    until: date | str | None = None
    """The first day on which it holds no more; None: for good."""

    money: Money = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name("price item", self.item)
        keep_whole(self, "per", least=1, most=1_000_000_000, what="price per")
        derive(self, "money", read_money("price amount", self.amount))
        for name in ("since", "until"):
            derive(self, name, _date(f"price {name}", getattr(self, name)))
        if not self.first < self.last:
            raise ConfigError(
                f"price until must be after since, got {self.since} and {self.until}",
                field="until",
                value=self.until,
            )

    @property
    def first(self) -> date:
        """The first day."""
        return self.since if isinstance(self.since, date) else date.min

    @property
    def last(self) -> date:
        """The day after the last."""
        return self.until if isinstance(self.until, date) else date.max

    def cost(self, quantity: int) -> Fraction:
        """Of so many units, in millionths, exactly."""
        return Fraction(quantity * self.money.micro, self.per)


class PriceList:
    """The prices of one upstream."""

    def __init__(self, prices: Sequence[Price]) -> None:
        self.currency = prices[0].money.currency
        self.items = sorted({one.item for one in prices})
        self._prices = {
            item: sorted((one for one in prices if one.item == item), key=lambda one: one.first)
            for item in self.items
        }
        self._warned: dict[str, date] = {}
        """The day on which it was last said that an item has no price."""
        _check_one_currency("prices", [one.money for one in prices], self.currency)
        for i, one in enumerate(prices):
            for other in prices[i + 1 :]:
                if one.item == other.item and one.first < other.last and other.first < one.last:
                    raise ConfigError(
                        f"prices of {one.item} must not overlap, got {shown(one)} and "
                        f"{shown(other)}: end the first with until=",
                        field="prices",
                        value=prices,
                    )

    def cost(
        self,
        used: Mapping[str, int],
        day: date | None = None,
        *,
        upstream: str = "",
    ) -> int:
        """What a call costs that uses so much of each item on a day, by default today, in
        millionths: rounded up once, so a call that keeps to its estimate costs no more than it.

        With `upstream`, the log is told of items that have no price on that day.
        """
        day = day or today()
        exact = (self._price(item, day, upstream).cost(number) for item, number in used.items())
        micro = math.ceil(sum(exact, Fraction()))
        if micro > _MOST:
            raise ConfigError(
                f"a call must cost at most {Money(_MOST, self.currency)}, got {shown(dict(used))}",
                field="used",
                value=used,
            )
        return micro

    def changes(self) -> list[date]:
        """The days on which a price begins: whatever the day, a call costs what it does on one."""
        return sorted({one.first for own in self._prices.values() for one in own})

    def gaps(self, day: date) -> list[str]:
        """What is missing, and what counts instead: days between two prices of an item, and the
        price of a day, if the first has not begun or the last one has ended."""
        found: list[str] = []
        for item, own in self._prices.items():
            found += [
                f"{item} has no price from {one.last} to {other.first}, so the one before counts"
                for one, other in pairwise(own)
                if one.last < other.first
            ]
            if own[-1].last <= day:
                found.append(f"{item} has no price since {own[-1].last}, so the one before counts")
            if own[0].first > day:
                found.append(f"{item} has no price before {own[0].first}, so that one counts")
        return found

    def _price(self, item: str, day: date, upstream: str) -> Price:
        """The price of an item on a day; where the table has none, the last one before, or the
        first of all.

        Prices seldom change much. To refuse the calls would stop a service because a table was not
        edited, and to make them for nothing would disable its budgets. So they are metered as
        before, budgets hold, and the log asks for the new price.
        """
        own = self._prices.get(item)
        if own is None:
            raise ConfigError(
                f"item must be one that has a price, got {shown(item)}; "
                f"{nearest(item, self.items)}",
                field="item",
                value=item,
            )
        price = next((one for one in reversed(own) if one.first <= day), own[0])
        if upstream and not price.first <= day < price.last:
            self._warn(upstream, price, day)
        return price

    def _warn(self, upstream: str, price: Price, day: date) -> None:
        """Say once a day that an item has no price."""
        if self._warned.get(price.item) != day:
            self._warned[price.item] = day
            words = "upstream %s: %s has no price on %s, so %s for %d is used: declare its price"
            _log.warning(words, upstream, price.item, day, price.amount, price.per)


@known_fields("budget")
@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be spent in a day or a month: `Budget("50 USD", per="day")`.

    Days and months are those of UTC. What calls may cost is reserved before they are made, so a
    hard budget is never exceeded by calls that cost no more than their estimate.
    """

    amount: str
    """At most, such as "50 USD"."""

    per: Literal["day", "month"] = "day"
    """The period."""

    each_tenant: bool = False
    """Whether each tenant has it for itself."""

    hard: bool = True
    """Whether calls stop when it is used up; else it only tells."""

    soft: float | None = None
    """A call should be frugal (`call.is_frugal`) if, with its own estimate, more than this share
    would be spent and reserved; None: never."""

    thresholds: Sequence[int] = (50, 80, 90, 100)
    """At which percent an event is written, once in a period."""

    money: Money = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        derive(self, "money", read_money("budget amount", self.amount))
        if self.money.micro == 0:
            raise ConfigError(
                f"budget amount must be above 0, got {self.amount}",
                field="amount",
                value=self.amount,
            )
        check_choice("budget per", self.per, ("day", "month"))
        check_is("budget each_tenant", self.each_tenant, bool)
        check_is("budget hard", self.hard, bool)
        if self.soft is not None:
            derive(self, "soft", check_real("budget soft", self.soft, least=0.001, most=1))
        given: Any = self.thresholds
        if not isinstance(given, list | tuple):
            raise ConfigError(
                f"budget thresholds must be a list of percents such as [80, 100], got "
                f"{shown(given)}",
                field="thresholds",
                value=given,
            )
        checked = [check_whole("budget threshold", one, least=1, most=1000) for one in given]
        derive(self, "thresholds", tuple(sorted(checked)))

    def settings(self) -> list[Any]:
        """What the server keeps of it."""
        is_each, is_hard = int(self.each_tenant), int(self.hard)
        return [self.per[0], self.money.micro, is_hard, self.soft or 0, self.thresholds, is_each]


def check_budgets(given: Any, currency: str | None, *, may_be_tenants: bool) -> tuple[Budget, ...]:
    """Budgets of one currency, at most one for each period and scope; None: of any currency."""
    if not (isinstance(given, list | tuple) and all(isinstance(one, Budget) for one in given)):
        raise ConfigError(
            f"budgets must be a list such as [Budget('50 USD', per='day')], got {shown(given)}",
            field="budgets",
            value=given,
        )
    if currency is not None:
        _check_one_currency("budgets", [one.money for one in given], currency)
    seen: set[tuple[str, str, bool]] = set()
    for one in given:
        at = (one.money.currency, one.per, one.each_tenant)
        if at in seen or (one.each_tenant and not may_be_tenants):
            wanted = "one for a period" if at in seen else "of no single tenant"
            raise ConfigError(f"budgets must be {wanted}, got {one}", field="budgets", value=given)
        seen.add(at)
    return tuple(given)


def total_settings(budgets: Sequence[Budget]) -> dict[str, list[Any]]:
    """What the server keeps of budgets for all upstreams of a currency."""
    settings: dict[str, list[Any]] = {}
    for one in budgets:
        settings.setdefault(one.money.currency, []).append(one.settings())
    return settings


def _check_one_currency(what: str, amounts: Sequence[Money], currency: str) -> None:
    others = {one.currency for one in amounts} - {currency}
    if others:
        raise ConfigError(
            f"{what} must all be in {currency}, got {', '.join(sorted(others))} as well",
            field=what,
            value=others,
        )


def _date(what: str, given: Any) -> date | None:
    if given is None or type(given) is date:
        return given
    with contextlib.suppress(ValueError):
        if isinstance(given, str):
            return date.fromisoformat(given)
    raise ConfigError(
        f"{what} must be a date such as '2024-01-01', got {shown(given)}",
        field=what.removeprefix("price "),
        value=given,
    )
