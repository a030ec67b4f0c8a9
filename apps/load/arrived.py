"""When what was sent has arrived, by the ledgers of the stand-ins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from apps.sandbox.ledger import Entry
from apps.sandbox.sandbox import Sandbox

_PUSH: Final = "send"
_MESSAGE: Final = "POST /{id}/messages"


def pushes(sandbox: Sandbox) -> dict[str, float]:
    """The instant of each push, by the number in its data."""
    at = {one.detail["name"]: one.ended_at for one in sandbox.push.ledger.of(_PUSH, "ok")}
    found: dict[str, float] = {}
    for one in sandbox.push.messages:
        found.setdefault(one["data"]["n"], at[one["name"]])
    return found


def counts(sandbox: Sandbox) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How often each push, each text and each mail came: by its number, words, subject."""
    return (
        Counter(one["data"]["n"] for one in sandbox.push.messages),
        Counter(_words(sandbox, one) for one in _texts(sandbox)),
        Counter(str(one.message["Subject"]) for one in sandbox.mail.mailbox),
    )


def messages(sandbox: Sandbox) -> dict[str, float]:
    """The instant of each text, by its words."""
    found: dict[str, float] = {}
    for one in _texts(sandbox):
        found.setdefault(_words(sandbox, one), one.ended_at)
    return found


def answers(sandbox: Sandbox) -> dict[str, float]:
    """The instant of the first text to each number."""
    found: dict[str, float] = {}
    for one in _texts(sandbox):
        found.setdefault(one.subject.removeprefix("+"), one.ended_at)
    return found


def took_ms(sent: Mapping[str, float], came: Mapping[str, float]) -> list[float]:
    """How long each took that has arrived."""
    return [1000 * (came[name] - at) for name, at in sent.items() if name in came]


def curve_ms(sent: Mapping[str, float], came: Mapping[str, float]) -> list[tuple[float, float]]:
    """The same by the second in which it was sent."""
    began = min(sent.values(), default=0.0)
    return [(at - began, 1000 * (came[name] - at)) for name, at in sent.items() if name in came]


def per_minute(instants: Sequence[float]) -> float:
    """How many came in a minute."""
    passed = max(instants, default=0.0) - min(instants, default=0.0)
    return 60 * len(instants) / passed if passed else 0.0


def _texts(sandbox: Sandbox) -> list[Entry]:
    sent = sandbox.whatsapp.conversation.sent
    taken = sandbox.whatsapp.ledger.of(_MESSAGE, "ok")
    return [one for one in taken if sent[one.detail["id"]].body.get("type", "text") == "text"]


def _words(sandbox: Sandbox, one: Entry) -> str:
    return sandbox.whatsapp.conversation.sent[one.detail["id"]].body["text"]["body"]
