"""One request and its answer: sent with the token, read up to a size, sorted if it went wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import httpx

from apps.providers import http
from apps.providers.reading import Unreadable, decode
from apps.providers.whatsapp import errors
from apps.providers.whatsapp.error_code import Code, Kind, code_of
from apps.providers.whatsapp.fields import Fields
from apps.providers.whatsapp.settings import Settings

T = TypeVar("T")

MOST_BYTES: Final = 1024 * 1024
USAGE: Final = "x-business-use-case-usage"

_TRACE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_USUAL_WAIT_S: Final = 60.0
_LONGEST_WAIT_S: Final = 3600.0
_CLASSES: Final[Mapping[Kind, type[errors.WhatsAppError]]] = {
    "retryable": errors.Retryable,
    "unauthorized": errors.Unauthorized,
    "blocked": errors.Blocked,
    "outside_window": errors.OutsideWindow,
    "permanent": errors.Permanent,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of WhatsApp."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None
    file: tuple[str, bytes, str] | None = None
    """Name, content and type of a file."""
    is_send: bool = False
    """Whether a customer sees it: then the lack of an answer leaves it open whether they do."""

    @property
    def unclear(self) -> type[errors.WhatsAppError]:
        """What the lack of a clear answer means: what no customer sees can be asked again."""
        return errors.UnknownOutcome if self.is_send else errors.Retryable


class Exchange:
    """Sends requests for one number."""

    def __init__(self, settings: Settings, client: httpx.AsyncClient) -> None:
        self._settings = settings
        self._exchange = http.Exchange(
            "whatsapp", client, settings.timeout_s, MOST_BYTES, unsent=errors.Retryable
        )

    async def ask(self, request: Request, read: Callable[[Fields], T]) -> T:
        """What `read` finds in a good answer; everything else is raised."""
        answer = await self._send(request)
        if not answer.is_success:
            raise refusal(request, answer)
        try:
            return read(Fields(decode(answer.body)))
        except Unreadable as error:
            what = f"whatsapp answered what cannot be read: {error}"
            raise request.unclear(what) from None

    async def _send(self, request: Request) -> http.Answer:
        settings = self._settings
        headers = {
            "authorization": f"Bearer {settings.access_token}",
            "accept-encoding": "identity",
        }
        if request.body is not None:
            headers["content-type"] = "application/json"
        return await self._exchange.ask(
            request.method,
            settings.base_url.rstrip("/") + request.path,
            unclear=request.unclear,
            params=request.query,
            content=None if request.body is None else json.dumps(request.body),
            data=request.form,
            files=None if request.file is None else {"file": request.file},
            headers=headers,
        )


def refusal(request: Request, answer: http.Answer) -> errors.WhatsAppError:
    """What an answer means that is not a good one: its code counts, then its status."""
    status = answer.status
    try:
        error = Fields(decode(answer.body)).inner("error")
        number, trace_id = error.whole("code"), error.text_or_empty("fbtrace_id")
        is_transient = error.is_true("is_transient")
    except Unreadable:
        return _by_status(request, answer)
    code = code_of(number)
    if code is None and not is_transient:
        return _by_status(request, answer, number)
    code = code or Code("retryable", "it says that this will pass")
    message = f"whatsapp answered {status} with code {number}: {code.meaning}"
    known: dict[str, Any] = {"status": status, "code": number, "trace_id": _plain(trace_id)}
    if code.kind in {"rate_limited", "pair_limited"}:
        limited = errors.PairLimited if code.kind == "pair_limited" else errors.RateLimited
        return limited(message, retry_after=_wait(answer, code), **known)
    return _CLASSES[code.kind](message, **known)


def _by_status(
    request: Request, answer: http.Answer, code: int | None = None
) -> errors.WhatsAppError:
    status = answer.status
    message = f"whatsapp answered {status}{'' if code is None else f' with code {code}'}"
    if status == 429:
        wait = _wait(answer, Code("rate_limited", "", _USUAL_WAIT_S))
        return errors.RateLimited(message, retry_after=wait, status=status, code=code)
    if status in {401, 403}:
        return errors.Unauthorized(message, status=status, code=code)
    if 400 <= status < 500 and status != 408:
        return errors.Permanent(message, status=status, code=code)
    kind = errors.Retryable if status == 408 else request.unclear
    return kind(message, status=status, code=code)


def _wait(answer: http.Answer, code: Code) -> float:
    """How long to wait: as a header says, or as is usual."""
    said = answer.retry_after or ""
    if said.isascii() and said.isdigit():
        return min(float(said), _LONGEST_WAIT_S)
    return min(_regained_s(answer.headers.get(USAGE, "")) or code.wait_s, _LONGEST_WAIT_S)


def _regained_s(usage: str) -> float:
    """Until when calls of the account are refused, in seconds; 0 if it does not say."""
    try:
        found = decode(usage.encode())
        accounts = Fields(found)
        uses = [use for name in found for use in accounts.objects(name)]
        return max((use.whole("estimated_time_to_regain_access") for use in uses), default=0) * 60
    except Unreadable:
        return 0


def _plain(trace_id: str) -> str:
    return trace_id if _TRACE.fullmatch(trace_id) else ""
