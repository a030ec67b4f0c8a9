"""How refusals and results are answered: as a page to people, as a problem to programs."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import RedirectResponse, Response

from faena.contrib.problem import problem, problem_of
from faena.errors import ArgumentError, ConfigError, FaenaError
from faena.values.view import View
from faena.web.route import Visit

_TITLES: Final = {
    400: "This request makes no sense",
    403: "This is not open to you",
    404: "There is nothing here",
    405: "This cannot be done here",
    409: "It has changed meanwhile",
    412: "It has changed meanwhile",
    413: "This is too large",
    422: "Something in it is not valid",
    429: "Too many requests",
    502: "It was not accepted",
    503: "The broker does not answer",
}


class Refusal(Exception):
    """A request that is not answered as its sender wished."""

    def __init__(self, status: int, code: str, words: str, *, retry_after: float = 0) -> None:
        super().__init__(words)
        self.status, self.code, self.words, self.retry_after = status, code, words, retry_after


def not_found(what: str = "page") -> Refusal:
    """What is not there, and what is another tenant's."""
    return Refusal(404, "not_found", f"there is no such {what}")


def refused(visit: Visit, kind: str, error: Refusal | FaenaError) -> Response:
    """The answer to a request that is refused."""
    told = error if isinstance(error, Refusal) else _refusal_of(error)
    if kind == "api":
        return problem(told.status, told.code, told.words, retry_after=told.retry_after)
    answer = visit.site.templates.page(
        visit,
        "refused.html",
        status=told.status,
        title=_TITLES.get(told.status, _TITLES[400]),
        words=told.words,
    )
    if told.retry_after:
        answer.headers["Retry-After"] = str(max(1, round(told.retry_after)))
    return answer


def _refusal_of(error: FaenaError) -> Refusal:
    """Operators see the error's own words; those that are the program's own are raised again."""
    answer = problem_of(error)
    if answer is None:
        if isinstance(error, ConfigError):
            return Refusal(422, "invalid", str(error))
        raise error
    code = msgspec.json.decode(answer.body)["code"]
    words = error.rule if isinstance(error, ArgumentError) else str(error)
    retry_after = float(answer.headers.get("retry-after", 0))
    return Refusal(answer.status_code, code, words, retry_after=retry_after)


def json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A result as JSON."""
    plain = content.to_dict() if isinstance(content, View) else content
    body = msgspec.json.encode(plain, enc_hook=str)
    return Response(body, status, headers, media_type="application/json")


def see_other(visit: Visit, path: str) -> Response:
    """After a form: go there, by GET."""
    return RedirectResponse(f"{visit.root}{path}", 303)


def way_back(given: str | None) -> str:
    """A path of the dashboard that a form names, or the overview: never another site."""
    text = given or "/"
    is_ours = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_ours and "\\" not in text else "/"
