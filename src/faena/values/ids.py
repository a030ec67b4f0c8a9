"""Job ids and idempotency keys.

A job id has 20 characters: 48 bits of milliseconds, then 72 random bits, in an alphabet in ASCII
order, so that ids sort by the time they were made. The producer makes them; so a call that is
repeated after a lost reply names the same job.

An idempotency key identifies a piece of work, so that doing it twice can be noticed:

    idem_org123_invoice_inv456_cae_1701234567     tenant, entity, its id, action, stamp
    idem_org123_pdf_inv456_v2                     the same without a stamp
    webhook_mp_98765_payment                      source, the sender's own id

Parts are separated by `_`. Inside a part, `_` is written `%5F` and `%` is written `%25`, so every
key can be parsed; the sender's id of a webhook comes last and is not escaped. A key has at most 128
characters (two UUIDs and the other parts need more than 64). One that was not built here has at
least 16, since a short string of a user's own is seldom unique.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Self, TypeAlias, TypeVar
from uuid import UUID

from faena.errors import ConfigError, shown
from faena.values.names import LABEL_MAX, check_label
from faena.values.numbers import check_whole

ID_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
"""64 characters in ASCII order, safe in URLs; without '-', which a command line would misread."""

_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_IN_ORDER: Final = bytes.maketrans(_BASE64, ID_ALPHABET.encode())
_BYTES: Final = 15
_RANDOM_BYTES: Final = 9
_ID_LENGTH: Final = 20
_LEAP_MASK: Final = (1 << 40) - 1
_TAIL: Final = 64 * 64
_TAILS: Final = tuple(high + low for high in ID_ALPHABET for low in ID_ALPHABET)

K = TypeVar("K")

_SHORTEST_KEY: Final = 16
_STAMP_MOST: Final = 10**15
_TOO_LONG: Final = 10**LABEL_MAX
"""The first int with more digits than a label may have."""


class IdFactory:
    """Makes ids that always increase within one process, whatever its clock does.

    Each call draws new random bits, so a forked child does not repeat its parent's ids. The ids of
    one call are successive numbers, which makes a batch cheap.
    """

    def __init__(self, clock_ms: Callable[[], int], entropy: Callable[[int], bytes]) -> None:
        self._clock_ms = clock_ms
        self._entropy = entropy
        self._last = b""
        self._lock = Lock()

    def new_id(self) -> str:
        """One id."""
        chance = self._entropy(_RANDOM_BYTES)
        with self._lock:
            raw = self._last = self._next(chance)
        return _encode(raw)

    def new_ids(self, count: int) -> list[str]:
        """`count` ids, in increasing order."""
        number = self._reserve(check_whole("count", count, least=0, most=1_000_000))
        ids: list[str] = []
        while len(ids) < count:
            head, low = _encode(number.to_bytes(_BYTES, "big"))[:-2], number % _TAIL
            tails = _TAILS[low : low + count - len(ids)]
            ids += [head + tail for tail in tails]
            number += len(tails)
        return ids

    def _reserve(self, count: int) -> int:
        """The first of `count` successive numbers, all above every number used before."""
        chance = self._entropy(_RANDOM_BYTES)
        with self._lock:
            first = int.from_bytes(self._next(chance), "big")
            self._last = (first + count).to_bytes(_BYTES, "big")
        return first

    def _next(self, chance: bytes) -> bytes:
        """A number made of the time and random bits, above every number used before."""
        raw = self._clock_ms().to_bytes(_BYTES - len(chance), "big") + chance
        if raw > self._last:
            return raw
        # the same millisecond, or a clock set back
        leap = 1 + (int.from_bytes(chance, "big") & _LEAP_MASK)
        return (int.from_bytes(self._last, "big") + leap).to_bytes(_BYTES, "big")


def _encode(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).translate(_IN_ORDER).decode()


def made_at_us(job_id: str) -> int | None:
    """When an id was made, by its producer's clock; None if the string is not a generated id."""
    if len(job_id) != _ID_LENGTH or not set(job_id) <= set(ID_ALPHABET):
        return None
    number = 0
    for letter in job_id[:8]:
        number = number * 64 + ID_ALPHABET.index(letter)
    return number * 1000


Part: TypeAlias = str | int | UUID
"""Types that a part of a key may have; it is stored as a string."""


@dataclass(frozen=True, slots=True, init=False)
class IdempotencyKey:
    """One action on one entity of a tenant; `str()` is the key."""

    tenant: str
    entity: str
    id: str
    action: str

    stamp: int | None = None
    """Distinguishes repetitions of the action, such as by unix seconds; None: it is done once."""

    def __init__(
        self,
        tenant: Part,
        entity: Part,
        id: Part,  # noqa: A002 - the field's own name
        action: Part,
        stamp: int | None = None,
    ) -> None:
        parts = {"tenant": tenant, "entity": entity, "id": id, "action": action}
        for what, part in parts.items():
            object.__setattr__(self, what, _as_part(f"idempotency {what}", part))
        if stamp is not None:
            stamp = check_whole("idempotency stamp", stamp, least=0, most=_STAMP_MOST)
        object.__setattr__(self, "stamp", stamp)
        check_label("idempotency key", str(self))

    def __str__(self) -> str:
        parts = [_escape(part) for part in (self.tenant, self.entity, self.id, self.action)]
        if self.stamp is not None:
            parts.append(str(self.stamp))
        return "_".join(["idem", *parts])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse what `str()` wrote; raises ConfigError for any other string."""
        return _parsed(cls, text, "idem_<tenant>_<entity>_<id>_<action>")


@dataclass(frozen=True, slots=True, init=False)
class WebhookKey:
    """One message of an external sender, identified by the sender's id; `str()` is the key."""

    source: str
    external_id: str

    def __init__(self, source: Part, external_id: Part) -> None:
        object.__setattr__(self, "source", _as_part("webhook source", source))
        object.__setattr__(self, "external_id", _as_part("webhook external_id", external_id))
        check_label("idempotency key", str(self))

    def __str__(self) -> str:
        return f"webhook_{_escape(self.source)}_{self.external_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse what `str()` wrote; raises ConfigError for any other string."""
        return _parsed(cls, text, "webhook_<source>_<id>")


BuiltKey: TypeAlias = IdempotencyKey | WebhookKey

Label: TypeAlias = Part | BuiltKey
"""Types that a job's id, a key or a tenant may have; it is stored as a string."""


def as_label(what: str, value: Any) -> str:
    """An id, a key or a tenant as a string."""
    is_built = isinstance(value, IdempotencyKey | WebhookKey)
    return str(value) if is_built else _as_part(what, value)


def _as_part(what: str, value: Any) -> str:
    """An int, also one of an enum, becomes its digits."""
    if isinstance(value, UUID):
        return check_label(what, str(value))
    if isinstance(value, int) and not isinstance(value, bool):
        number = int.__int__(value)
        return check_label(what, str(number) if abs(number) < _TOO_LONG else value)
    return check_label(what, value)


def parse_key(text: str) -> BuiltKey | None:
    """The parsed key, or None for a string that no key class writes."""
    try:
        key = _parse(text)
    except ConfigError:
        return None
    return key if key is not None and str(key) == text else None


def check_key(what: str, value: Any) -> str:
    """Return `value` if it is a valid idempotency key, built here or not."""
    text = check_label(what, value)
    if len(text) >= _SHORTEST_KEY or parse_key(text) is not None:
        return text
    raise ConfigError(
        f"{what} must be an IdempotencyKey, a WebhookKey or at least {_SHORTEST_KEY} characters, "
        f"got {shown(value)}",
        field=what,
        value=value,
    )


def _parse(text: str) -> BuiltKey | None:
    kind, _, rest = check_label("idempotency key", text).partition("_")
    parts = rest.split("_")
    if kind == "webhook":
        source, _, external_id = rest.partition("_")
        return WebhookKey(_unescape(source), external_id)
    if kind != "idem" or len(parts) not in {4, 5} or (len(parts) == 5 and not parts[4].isdecimal()):
        return None
    tenant, entity, name, action = map(_unescape, parts[:4])
    return IdempotencyKey(tenant, entity, name, action, int(parts[4]) if parts[4:] else None)


def _parsed(kind: type[K], text: str, form: str) -> K:
    key = parse_key(text)
    if not isinstance(key, kind):
        raise ConfigError(
            f"key must have the form {form}, got {shown(text)}", field="key", value=text
        )
    return key


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("_", "%5F")


def _unescape(part: str) -> str:
    return part.replace("%5F", "_").replace("%25", "%")
