"""The tax office.

register            cuit, points_of_sale, delegates_to: a business, new or known; with
                    `delegates_to` (a CUIT, by default the platform's) who may issue for it
issue_certificate   cuit, points_of_sale, alias → certificate_pem, key_pem
remark              document_number, codes: what the office has to say about a receiver
break_down          operation, code, times, is_done: fail with a code of the office's own
vouchers            (a list) those with a CAE, by series and number
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.sandbox.afip import Afip
from apps.sandbox.afip.registry import has_check_digit
from apps.sandbox.control.act import Acts, Given


class _Business(Given, frozen=True, kw_only=True):
    cuit: int | str
    points_of_sale: tuple[int, ...] = (1,)
    delegates_to: int | str | None = None


class _Certificate(Given, frozen=True, kw_only=True):
    cuit: int | str
    points_of_sale: tuple[int, ...] = (1,)
    alias: str = "faena"


class _Remark(Given, frozen=True, kw_only=True):
    document_number: int
    codes: tuple[int, ...]


class _Trouble(Given, frozen=True, kw_only=True):
    operation: str
    code: int | str
    times: int = 1
    is_done: bool = False


def afip_acts(afip: Afip, platform: str) -> Acts:
    """Businesses delegate to `platform` unless they say otherwise."""
    acts = Acts()

    def register(given: _Business) -> dict[str, Any]:
        to = int(given.delegates_to or platform)
        if not (has_check_digit(to) and has_check_digit(int(given.cuit))):
            raise ValueError("cuit and delegates_to must end with their check digits")
        afip.registry.register(int(given.cuit), given.points_of_sale)
        afip.delegate(given.cuit, to)
        return {"cuit": str(given.cuit), "delegates_to": str(to)}

    def issue(given: _Certificate) -> dict[str, str]:
        made = afip.issue_certificate(
            given.cuit, points_of_sale=given.points_of_sale, alias=given.alias
        )
        certificate, key = made.certificate_pem.decode(), made.key_pem.decode()
        return {"certificate_pem": certificate, "key_pem": key}

    def remark(given: _Remark) -> None:
        afip.registry.remarks[given.document_number] = given.codes

    def break_down(given: _Trouble) -> None:
        afip.break_down(given.operation, given.code, times=given.times, is_done=given.is_done)

    acts.on("register", _Business, register)
    acts.on("issue_certificate", _Certificate, issue)
    acts.on("remark", _Remark, remark)
    acts.on("break_down", _Trouble, break_down)
    acts.things["vouchers"] = lambda: _vouchers(afip)
    return acts


def _vouchers(afip: Afip) -> Iterable[dict[str, Any]]:
    return [
        {
            "subject": one.subject,
            "cae": one.cae,
            "date": one.date.isoformat(),
            "total": str(one.detail.total),
        }
        for one in afip.register.records
    ]
