"""Which dead jobs are retried by themselves, and the codes that decide it."""

from __future__ import annotations

import errno
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest

from faena import DeadLetters, Discard, Faena
from faena.deadletter.death_note import death_note
from faena.errors import ConfigError
from faena.values.names import check_words
from faena.worker.execute.failure import TimedOut, record_of


class Coded(Exception):
    def __init__(self, **facts: Any) -> None:
        super().__init__("coded")
        self.__dict__.update(facts)


class Moody(Exception):
    @property
    def code(self) -> str:
        raise RuntimeError("not today")


def wrapped(cause: BaseException, error: BaseException | None = None) -> BaseException:
    error = error or Coded()
    error.__cause__ = cause
    return error


class Refused(Discard):
    code = "REFUSED"


def answer(status: int) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://provider")
    return httpx.HTTPStatusError(
        "no", request=request, response=httpx.Response(status, request=request)
    )


CODES = [
    (ConnectionRefusedError("no"), "ECONNREFUSED"),
    (OSError(errno.EHOSTUNREACH, "no"), "EHOSTUNREACH"),
    (OSError("no"), None),
    (TimeoutError(), "ETIMEDOUT"),
    (TimedOut("late"), "TIMEOUT"),
    (wrapped(wrapped(ConnectionRefusedError("no"))), "ECONNREFUSED"),
    (wrapped(ValueError("no")), None),
    (answer(429), "RATE_LIMIT"),
    (answer(503), "SERVICE_UNAVAILABLE"),
    (answer(404), None),
    (HTTPError("http://x", 429, "no", {}, None), "RATE_LIMIT"),  # type: ignore[arg-type]
    (Coded(status=503), "SERVICE_UNAVAILABLE"),
    (Coded(code="E_MINE"), "E_MINE"),
    (Coded(code=7), "7"),
    (Coded(code=True), None),
    (Coded(code="card declined"), "card declined"),
    (Coded(code="x" * 200), "x" * 128),
    (Coded(code="two\nlines \udc80"), "two\\nlines \\udc80"),
    (Coded(code=10**5000), None),
    (Moody(), None),
    (wrapped(TimeoutError(), Discard("wrong address")), None),
    (wrapped(TimeoutError(), Refused("wrong address")), "REFUSED"),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=lambda part: str(part)[:40])
def test_errors_have_the_codes_that_operators_know(error: BaseException, code: str | None) -> None:
    assert record_of(error, attempt=1, worker="w", at=0).code == code
    assert code is None or check_words("error", code) == code  # it can be asked for


def test_long_names_are_cut_so_that_they_can_be_asked_for() -> None:
    error = type("Boom" * 50, (Exception,), {})()
    assert check_words("error", record_of(error, attempt=1, worker="w", at=0).name)


def test_causes_that_go_round_in_circles_end() -> None:
    error = Coded()
    error.__cause__ = error
    assert record_of(error, attempt=1, worker="w", at=0).code is None


def test_codes_and_classes_decide() -> None:
    options = DeadLetters(errors=(Coded,))
    assert options.retries("ETIMEDOUT", None)
    assert options.retries(None, Coded())
    assert not options.retries("TIMEOUT", ValueError())
    assert DeadLetters(auto_retry=False).retries("ETIMEDOUT", None)  # it is asked when due
    assert not DeadLetters(most_retries=0).retries("ETIMEDOUT", None)


def test_a_job_that_its_handler_discards_is_not_retried() -> None:
    options = DeadLetters(errors=(Exception,), codes=("REFUSED",))
    for error, is_again in ((ValueError(), True), (Discard("no"), False), (Refused("no"), False)):
        record = record_of(error, attempt=1, worker="w", at=0)
        assert bool(death_note(record, error, None, options).retry_us) == is_again


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        (None, {}, True),
        (False, {}, False),
        (True, {"ENABLE_DLQ_AUTO_RETRY": "false"}, False),
        (False, {"ENABLE_DLQ_AUTO_RETRY": " TRUE "}, True),
        (None, {"ENABLE_DLQ_AUTO_RETRY": ""}, True),
    ],
)
def test_the_environment_has_the_last_word(
    given: bool | None, environ: dict[str, str], expected: bool
) -> None:
    assert DeadLetters(auto_retry=given).settled(environ).auto_retry is expected


def test_a_word_that_is_neither_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be true or false, got 'maybe'"):
        DeadLetters().settled({"ENABLE_DLQ_AUTO_RETRY": "maybe"})


WRONG: list[dict[str, Any]] = [
    {"auto_retry": "yes"},
    {"codes": "ETIMEDOUT"},
    {"codes": (429,)},
    {"errors": (int,)},
    {"errors": ValueError},
    {"retry_after": "soon"},
    {"most_retries": -1},
    {"alert_new": 1.5},
    {"alert_age": 24},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be"):
        DeadLetters(**options)


def test_an_app_wants_dead_letters() -> None:
    with pytest.raises(ConfigError, match="dead_letters must be a DeadLetters"):
        Faena("shop", dead_letters={"auto_retry": False})  # type: ignore[arg-type]
