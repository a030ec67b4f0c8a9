"""`faena features`: what operators see of features and levels, and what they say of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from faena import Breaker, Faena
from faena.engine.calls.features import FeatureCalls
from tests.cli.conftest import Cli, listed

app = Faena("feature-counter", "redis://127.0.0.1:1/0")
afip = app.upstream("afip", breaker=Breaker(volume=1, open="10m"))
invoicing = app.feature(
    "invoicing.afip", critical=True, fallback="queue", upstreams=[afip], message="queued"
)
voice = app.feature("ai.voice", fallback="manual")
app.level("black-friday", {"ai.voice": "offline"})
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")


def document(cli: Cli, *args: str) -> Any:
    code, out, err = cli("features", *args, "--json")
    assert (code, err) == (0, "")
    return listed(json.loads(out))


def trip() -> None:
    async def work() -> None:
        async with app:
            with pytest.raises(ConnectionRefusedError):
                async with afip.call():
                    raise ConnectionRefusedError("down")
            await app.features()
            await (await app.runtime()).gate.flush()

    asyncio.run(work())


def test_all_are_listed_with_the_overall_state(cli: Cli) -> None:
    trip()
    code, out, err = cli("features", TARGET)
    assert (code, err) == (0, "")
    heads, _, first, second, overall = out.splitlines()
    assert heads.split()[:4] == ["feature", "state", "critical", "fallback"]
    assert first.split() == ["ai.voice", "healthy", "manual"]
    assert second.split()[:4] == ["invoicing.afip", "offline", "yes", "queue"]
    assert second.split()[-2:] == ["breaker:afip", "queued"]
    assert overall == "overall: offline"
    told = document(cli)
    assert told["overall"] == "offline"
    assert told["features"]["invoicing.afip"]["since"].endswith("Z")


def test_a_state_is_set_shown_and_cleared(cli: Cli) -> None:
    words = ("ai.voice", "degraded", "--message", "slow", "--for", "1h", "--by", "ana")
    told = document(cli, "set", *words)
    assert (told["state"], told["source"], told["message"]) == ("degraded", "operator", "slow")
    _, out, _ = cli("features", "show", "ai.voice")
    assert "degraded since" in out
    assert "by ana, until" in out
    assert document(cli, "clear", "ai.voice")["cleared"] is True
    assert cli("features", "clear", "ai.voice")[1] == (
        "ai.voice: nothing was set by hand; it is healthy\n"
    )


def test_those_of_another_program_are_shown_and_set(cli: Cli) -> None:
    async def declare() -> None:
        url = app._links.connection.url
        async with Faena("elsewhere", url, namespace=app.namespace) as other:
            other.feature("payments", message="pay in cash")
            other.level("night", {"payments": "degraded"})
            await other.features()

    asyncio.run(declare())
    assert document(cli, "show", "payments")["state"] == "healthy"
    told = document(cli, "set", "payments", "offline", "--by", "ana")
    assert (told["state"], told["message"]) == ("offline", "pay in cash")
    assert document(cli, "clear", "payments")["cleared"] is True
    assert cli("features", "level", "night", "on")[0] == 0
    assert document(cli)["features"]["payments"]["source"] == "level:night"
    for words in (("show",), ("set",), ("clear",)):
        state = ("offline",) if words == ("set",) else ()
        code, _, err = cli("features", *words, "payment", *state)
        assert code == 2
        assert "got 'payment'; did you mean 'payments'" in err


def test_a_level_is_switched_and_listed(cli: Cli) -> None:
    assert document(cli, "levels")[0]["is_on"] is False
    code, out, _ = cli("features", "level", "black-friday", "on", "--for", "1d", "--by", "ana")
    assert code == 0
    assert out.startswith("black-friday is on until ")
    assert out.endswith("; overall: healthy\n")
    (level,) = document(cli, "levels")
    assert (level["is_on"], level["by"], level["states"]) == (True, "ana", {"ai.voice": "offline"})
    assert document(cli)["features"]["ai.voice"]["source"] == "level:black-friday"
    assert "on: black-friday" in cli("features")[1]
    assert cli("features", "level", "black-friday", "off")[1].startswith("black-friday is off;")
    assert "was off already" in cli("features", "level", "black-friday", "off")[1]


def test_those_that_no_program_declares_are_forgotten(cli: Cli) -> None:
    async def declare() -> None:
        async with app:
            calls = FeatureCalls((await app.runtime()).engine)
            await calls.declare({"old": {}}, {"old": {"old": "offline"}})

    asyncio.run(declare())
    assert cli("features", "forget", "old", "--by", "ana")[:2] == (0, "feature old is forgotten\n")
    assert document(cli, "forget", "old", "--level") == {"level": "old", "forgotten": True}
    assert "old" not in cli("features")[1] + cli("features", "levels")[1]
    code, _, err = cli("features", "forget", "ai.voice")
    assert (code, "remove app.feature('ai.voice', …) from the code first" in err) == (2, True)
    code, _, err = cli("features", "forget", "black-fridays", "--level")
    assert (code, "did you mean 'black-friday'" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("show", "ai.vice"),
            "feature must be a known name, got 'ai.vice'; did you mean 'ai.voice'",
        ),
        (("set", "ai.voice", "gone"), "state must be 'degraded' or 'offline', got 'gone'"),
        (("set", "ai.voice", "healthy"), "`clear` ends a state that was set by hand"),
        (("set", "ai.voice", "offline", "--for", "-1h"), "it must be a duration such as"),
        (("set", "ai.voice", "offline", "--for", "0s"), "longer than 0s"),
        (("set", "ai.voice"), "STATE must be given"),
        (("level", "back-friday", "on"), "did you mean 'black-friday'"),
        (("level", "black-friday", "maybe"), "must be switched 'on' or 'off', got 'maybe'"),
        (("level", "black-friday", "off", "--for", "1h"), "with 'on' only"),
        (("sett", "ai.voice"), "no command 'sett'; did you mean 'set'"),
    ],
)
def test_wrong_words_are_refused(cli: Cli, words: tuple[str, ...], told: str) -> None:
    code, _, err = cli("features", *words)
    assert code == 2
    assert told in err
