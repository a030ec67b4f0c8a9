"""Signing in with a provider of identities: to it, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse, Response

from faena.web.access.gate import address_of
from faena.web.access.oidc import Away, Denied, Refused
from faena.web.answer import Refusal, not_found, see_other, way_back
from faena.web.page.door import come_in
from faena.web.route import Visit

if TYPE_CHECKING:
    from faena.web.access.provider import Provider

_LASTING_S: Final = 600


async def begin(visit: Visit) -> Response:
    """Send the browser to the provider."""
    provider = _provider(visit)
    wait_s = visit.site.callers.wait_s(f"from {address_of(visit.request)}")
    if wait_s:
        words = "too many requests: come again later"
        raise Refusal(429, "too_many", words, retry_after=wait_s)
    back = way_back(visit.request.query_params.get("back"))
    if visit.known is not None:
        return see_other(visit, back)
    try:
        where, state = await provider.begin(f"{visit.address}/oidc/back", back)
    except (Away, Refused) as error:
        raise _refusal(error) from None
    answer = RedirectResponse(where, 303)
    answer.set_cookie(
        _cookie(visit),
        state,
        max_age=_LASTING_S,
        httponly=True,
        secure=visit.request.url.scheme == "https",
        samesite="lax",
        path="/",
    )
    return answer


async def back(visit: Visit) -> Response:
    """The browser comes back with a code."""
    kept = visit.request.cookies.get(_cookie(visit), "")
    try:
        caller, where = await _provider(visit).finish(dict(visit.request.query_params), kept)
    except (Away, Denied, Refused) as error:
        raise _refusal(error) from None
    answer = await come_in(visit, caller, way_back(where))
    is_secure = visit.request.url.scheme == "https"
    answer.delete_cookie(_cookie(visit), path="/", secure=is_secure, httponly=True, samesite="lax")
    return answer


def _provider(visit: Visit) -> Provider:
    found = visit.site.gate.provider
    if found is None:
        raise not_found()
    return found


def _refusal(error: Away | Denied | Refused) -> Refusal:
    if isinstance(error, Away):
        return Refusal(503, "provider", str(error), retry_after=5)
    return Refusal(403, "denied" if isinstance(error, Denied) else "sign_in", str(error))


def _cookie(visit: Visit) -> str:
    """Of a secret that is kept until the browser comes back."""
    return "__Host-faena-oidc" if visit.request.url.scheme == "https" else "faena-oidc"
