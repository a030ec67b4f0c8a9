"""Who is invited sets a password."""

from __future__ import annotations

from starlette.responses import Response

from faena.errors import ArgumentError
from faena.web.answer import Refusal, see_other
from faena.web.page.door import check_origin, come_in, field_text, say
from faena.web.route import Visit


async def invitation_page(visit: Visit) -> Response:
    """A link was opened: it is used up by the password only."""
    return await _page(visit, visit.request.path_params["secret"])


async def accept(visit: Visit) -> Response:
    """Set the password, and let its owner in."""
    check_origin(visit.request)
    form = await visit.request.form(max_fields=20)
    secret, password = field_text(form, "secret"), field_text(form, "password")
    if password != field_text(form, "again"):
        return await _page(visit, secret, say(visit)("The two passwords differ."), status=422)
    gate = visit.site.gate
    try:
        name = await gate.invitations.accept(secret, password)
    except ArgumentError:
        words = say(visit)(
            "This password is guessed soon: take a longer one, without your name in it."
        )
        return await _page(visit, secret, words, status=422)
    if name is None:
        raise _used()
    account = await gate.accounts.user(name)
    if account is None or account.is_off or not gate.access.users:
        return see_other(visit, "/sign-in")
    return await come_in(visit, account.caller("session"), "/")


async def _page(visit: Visit, secret: str, problem: str = "", status: int = 200) -> Response:
    name = await visit.site.gate.invitations.whose(secret)
    if name is None:
        raise _used()
    data = {"secret": secret, "user": name, "problem": problem}
    return visit.site.templates.page(visit, "invitation.html", status=status, **data)


def _used() -> Refusal:
    return Refusal(403, "link", "this link was used already, or is too old: ask for another one")
