"""What WhatsApp's error codes mean. The same code may come with an answer or in a status later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Kind = Literal[
    "retryable",
    "rate_limited",
    "pair_limited",
    "unauthorized",
    "blocked",
    "outside_window",
    "permanent",
]


class Code(NamedTuple):
    """What one means."""

    kind: Kind
    meaning: str
    wait_s: float = 0
    """How long to wait if WhatsApp does not say."""


_PERMISSION: Final = Code("unauthorized", "the token lacks a permission")

CODES: Final[Mapping[int, Code]] = {
    0: Code("unauthorized", "the token is not valid"),
    190: Code("unauthorized", "the token has expired"),
    3: _PERMISSION,
    10: _PERMISSION,
    131005: _PERMISSION,
    4: Code("rate_limited", "the app makes too many calls", 60),
    80007: Code("rate_limited", "the account makes too many calls", 60),
    130429: Code("rate_limited", "the number sends too many messages", 5),
    131057: Code("rate_limited", "the number is being upgraded", 60),
    131056: Code("pair_limited", "too many messages to one recipient", 6),
    131048: Code("blocked", "too many messages were taken for spam"),
    131064: Code("blocked", "the messaging limit was cut"),
    131031: Code("blocked", "the account is locked"),
    368: Code("blocked", "the account is blocked for a violation of policies"),
    130497: Code("blocked", "the account may not write to this country"),
    131042: Code("blocked", "the account has a payment problem"),
    132015: Code("blocked", "the template is paused"),
    132016: Code("blocked", "the template is disabled"),
    132068: Code("blocked", "the flow is blocked"),
    1: Code("retryable", "an unknown error"),
    2: Code("retryable", "the service is down"),
    131000: Code("retryable", "something went wrong"),
    131016: Code("retryable", "the service is unavailable"),
    135000: Code("retryable", "a generic error"),
    132069: Code("retryable", "the flow is throttled"),
    33: Code("permanent", "the number does not exist any more"),
    100: Code("permanent", "a parameter is not valid"),
    131008: Code("permanent", "a parameter is missing"),
    131009: Code("permanent", "a value is not valid"),
    131021: Code("permanent", "the sender is the recipient"),
    131026: Code("permanent", "the recipient cannot get it"),
    131030: Code("permanent", "the recipient is not on the list of the test number"),
    131037: Code("permanent", "the name of the number is not approved"),
    131045: Code("permanent", "the number is not registered"),
    133010: Code("permanent", "the number is not registered"),
    131047: Code("outside_window", "the customer last wrote more than 24 h ago"),
    # Of these two nothing comes within a day, so a retry in minutes would be in vain.
    131049: Code("permanent", "not delivered, to keep the ecosystem healthy"),
    130472: Code("permanent", "the recipient is part of an experiment"),
    131050: Code("permanent", "the recipient wants no marketing"),
    # A file that could not be fetched is nearly always a wrong file: its link must be mended.
    131051: Code("permanent", "the type of message is not supported"),
    131052: Code("permanent", "a file could not be downloaded"),
    131053: Code("permanent", "a file could not be uploaded"),
    132000: Code("permanent", "the number of parameters is not that of the template"),
    132001: Code("permanent", "there is no such template in this language"),
    132005: Code("permanent", "the text of the template is too long"),
    132007: Code("permanent", "the template violates a policy"),
    132008: Code("permanent", "a parameter of the template has a wrong value"),
    132012: Code("permanent", "a parameter of the template has a wrong format"),
    137000: Code("permanent", "the identity of the recipient has changed"),
}


def code_of(number: int) -> Code | None:
    """What a code means; None for one that is not known here."""
    return _PERMISSION if 200 <= number <= 299 else CODES.get(number)
