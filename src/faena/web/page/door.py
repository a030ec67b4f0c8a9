"""Coming in and going out, and what belongs to a reader: language and theme."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from faena.web.access.caller import Caller
from faena.web.access.gate import TooManyTries, address_of, cookie_name, is_foreign
from faena.web.answer import Refusal, not_found, see_other, way_back
from faena.web.route import Visit
from faena.web.template import spoken
from faena.web.words import LANGUAGES, Speaker

_YEAR_S: Final = 365 * 86_400
_MOST_FIELDS: Final = 20


async def sign_in_page(visit: Visit) -> Response:
    """The way in for people; those who are in go on."""
    back = way_back(visit.request.query_params.get("back"))
    if visit.known is not None:
        return see_other(visit, back)
    return _door(visit, back)


async def sign_in(visit: Visit) -> Response:
    """Somebody says who they are."""
    check_origin(visit.request)
    form = await visit.request.form(max_fields=_MOST_FIELDS)
    name, back = field_text(form, "user"), way_back(field_text(form, "back"))
    try:
        caller = await visit.site.gate.sign_in(
            name, field_text(form, "password"), address_of(visit.request)
        )
    except TooManyTries:
        words = say(visit)("Too many tries: wait a quarter of an hour.")
        return _door(visit, back, user=name, problem=words, status=429)
    if caller is None:
        words = say(visit)("User and password do not match.")
        return _door(visit, back, user=name, problem=words, status=401)
    return await come_in(visit, caller, back)


async def link_page(visit: Visit) -> Response:
    """A link was opened: asks once more, so that a preview of the link does not use it up."""
    secret = visit.request.path_params["secret"]
    return visit.site.templates.page(visit, "link.html", secret=secret)


async def use_link(visit: Visit) -> Response:
    """Let the one who has a link in."""
    check_origin(visit.request)
    form = await visit.request.form(max_fields=_MOST_FIELDS)
    caller = None
    if visit.site.gate.access.link:
        caller = await visit.site.gate.sessions.use_link(field_text(form, "secret"))
    if caller is None:
        words = "this link was used already, or is too old: ask for another one"
        raise Refusal(403, "link", words)
    return await come_in(visit, caller, "/")


async def sign_out(visit: Visit) -> Response:
    """End the session."""
    name = cookie_name(visit.request)
    await visit.site.gate.sessions.end(visit.request.cookies.get(name, ""))
    answer = see_other(visit, "/sign-in")
    answer.delete_cookie(name, path="/")
    return answer


async def theme(visit: Visit) -> Response:
    """The other theme: system, light, dark, and again."""
    form = await visit.request.form(max_fields=_MOST_FIELDS)
    order = {"": "light", "light": "dark"}
    chosen = order.get(visit.request.cookies.get("faena-theme", ""), "")
    answer = see_other(visit, way_back(field_text(form, "back")))
    _remember(visit, answer, "faena-theme", chosen)
    return answer


async def language(visit: Visit) -> Response:
    """Another language."""
    form = await visit.request.form(max_fields=_MOST_FIELDS)
    chosen = field_text(form, "language")
    if chosen not in LANGUAGES:
        raise Refusal(422, "invalid", f"language must be one of {', '.join(LANGUAGES)}")
    answer = see_other(visit, way_back(field_text(form, "back")))
    _remember(visit, answer, "faena-language", chosen)
    return answer


async def account_page(visit: Visit) -> Response:
    """Who one is, and what one may do."""
    return visit.site.templates.page(visit, "account.html")


async def static(visit: Visit) -> Response:
    """A file that pages need; its address changes with its content."""
    name, tag = visit.request.path_params["name"], visit.request.path_params["tag"]
    content, known = visit.site.templates.static.get(name, (b"", ""))
    if tag != known:
        raise not_found("file")
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, headers=headers, media_type=kind)


async def come_in(visit: Visit, caller: Caller, back: str) -> Response:
    """Begin a session, and go on."""
    secret = await visit.site.gate.sessions.begin(caller)
    answer = see_other(visit, back)
    name = cookie_name(visit.request)
    is_secure = visit.request.url.scheme == "https"
    answer.set_cookie(name, secret, httponly=True, secure=is_secure, samesite="lax", path="/")
    return answer


def _door(
    visit: Visit, back: str, *, user: str = "", problem: str = "", status: int = 200
) -> Response:
    data = {"back": back, "user": user, "problem": problem}
    doors = visit.site.gate.access
    return visit.site.templates.page(visit, "sign-in.html", status=status, doors=doors, **data)


def check_origin(request: Request) -> None:
    """A form of another site must not sign somebody in."""
    if is_foreign(request):
        raise Refusal(403, "forged", "this form comes from another page: open this page again")


def _remember(visit: Visit, answer: Response, name: str, value: str) -> None:
    is_secure = visit.request.url.scheme == "https"
    answer.set_cookie(name, value, max_age=_YEAR_S, secure=is_secure, samesite="lax", path="/")


def field_text(form: FormData, name: str) -> str:
    """A field of a form; empty if it is missing."""
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def say(visit: Visit) -> Speaker:
    """Speaks a reader's language."""
    return Speaker(spoken(visit))
