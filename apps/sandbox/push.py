"""A stand-in for Firebase Cloud Messaging and for Google's token service.

A service account is a name and a public key. `/token` checks the claim that its key has signed and
gives an access token for an hour; `expire_tokens` ends all of them. Devices are those that
`register` has named; `unregister` removes the app from one.
"""

from __future__ import annotations

import base64
import itertools
import json
import secrets
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from apps.sandbox.stand_in import Refused, Reply, StandIn

_SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_FCM_ERROR: Final = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
_BAD_REQUEST: Final = "type.googleapis.com/google.rpc.BadRequest"
_FIELDS: Final = frozenset(
    {"token", "topic", "condition", "notification", "data", "android", "apns", "webpush",
     "fcm_options", "name"}
)  # fmt: skip
_STATUSES: Final = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED",
                    404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}  # fmt: skip
_CODES: Final = {429: "QUOTA_EXCEEDED", 500: "INTERNAL", 503: "UNAVAILABLE"}
_SKEW_S: Final = 300
_LIFETIME_S: Final = 3600
_MOST_BYTES: Final = 4096


class _Refusal(Refused):
    def __init__(self, status: int, message: str, *details: dict[str, Any]) -> None:
        super().__init__(message)
        self.status, self.details = status, details

    @property
    def response(self) -> Response:
        return _problem(self.status, str(self), *self.details)

    @property
    def detail(self) -> dict[str, Any]:
        return {"status": self.status}


class _Denied(Refused):
    """What the token service answers."""

    @property
    def response(self) -> Response:
        words = {"error": "invalid_grant", "error_description": str(self)}
        return JSONResponse(words, 400)


class Push(StandIn):
    """One project with one service account."""

    name: ClassVar[str] = "push"

    def __init__(self, project_id: str, client_email: str, public_key: RSAPublicKey) -> None:
        super().__init__()
        self._project, self._email, self._public_key = project_id, client_email, public_key
        self._tokens: dict[str, float] = {}
        self._numbers = itertools.count(1)
        self.devices: set[str] = set()
        self.messages: list[dict[str, Any]] = []
        """Those that were taken, in order."""

    def routes(self) -> Sequence[BaseRoute]:
        """Tokens and messages."""
        send = "/v1/projects/{project}/messages:send"
        return [
            Route("/token", self._token, methods=["POST"]),
            Route(send, self._send, methods=["POST"]),
        ]

    def register(self) -> str:
        """A new device; its token."""
        token = f"{secrets.token_urlsafe(16)}:APA91b{secrets.token_urlsafe(90)}"
        self.devices.add(token)
        return token

    def unregister(self, token: str) -> None:
        """The app is removed from a device."""
        self.devices.remove(token)

    def expire_tokens(self) -> None:
        """No access token is good any more."""
        self._tokens.clear()

    def failure(self, status: int) -> Response:
        """In Google's format."""
        details = [_detail(_CODES[status])] if status in _CODES else []
        return _problem(status, "The service is in trouble.", *details)

    async def _token(self, request: Request) -> Response:
        body, own_url = await request.body(), str(request.url)

        async def work(_: bool) -> Reply:
            self._check_claim(body, own_url)
            token = f"ya29.{secrets.token_urlsafe(40)}"
            self._tokens[token] = time.time() + _LIFETIME_S
            granted = {
                "access_token": token,
                "expires_in": _LIFETIME_S - 1,
                "token_type": "Bearer",
            }
            return Reply(response=JSONResponse(granted), subject=self._email)

        return await self.play("token", work)

    def _check_claim(self, body: bytes, own_url: str) -> None:
        form = dict(parse_qsl(body.decode(errors="replace")))
        if form.get("grant_type") != _GRANT:
            raise _Denied("unsupported grant type")
        signed, _, signature = form.get("assertion", "").rpartition(".")
        header, _, claims = signed.partition(".")
        head, said = _part(header), _part(claims)
        if head.get("alg") != "RS256" or head.get("typ") != "JWT":
            raise _Denied("Invalid JWT: wrong algorithm.")
        if said.get("iss") != self._email:
            raise _Denied("Invalid grant: account not found")
        self._check_signature(signed, signature)
        if said.get("aud") != own_url or _SCOPE not in str(said.get("scope")).split():
            raise _Denied("Invalid JWT: wrong audience or scope.")
        begins, ends, now = said.get("iat"), said.get("exp"), time.time()
        if not isinstance(begins, int) or not isinstance(ends, int):
            raise _Denied("Invalid JWT: no time.")
        if not now - _SKEW_S < ends <= begins + _LIFETIME_S or begins > now + _SKEW_S:
            raise _Denied("Invalid JWT: Token must be a short-lived token (60 minutes).")

    def _check_signature(self, signed: str, signature: str) -> None:
        try:
            given = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
            self._public_key.verify(given, signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except (InvalidSignature, ValueError):
            raise _Denied("Invalid JWT Signature.") from None

    async def _send(self, request: Request) -> Response:
        body = await request.body()

        async def work(is_wrong: bool) -> Reply:
            self._check_access(request)
            return self._take(_json(body), is_wrong)

        return await self.play("send", work)

    def _check_access(self, request: Request) -> None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or self._tokens.get(token, 0) < time.time():
            raise _Refusal(401, "Request had invalid authentication credentials.")
        if request.path_params["project"] != self._project:
            raise _Refusal(403, "Permission denied on resource project.")

    def _take(self, body: Any, is_wrong: bool) -> Reply:
        message = check_message(body)
        token = message["token"]
        if token not in self.devices:
            raise _Refusal(404, "Requested entity was not found.", _detail("UNREGISTERED"))
        name = f"projects/{self._project}/messages/{next(self._numbers)}"
        if not body.get("validate_only"):
            self.messages.append({**message, "name": name})
        shown = {} if is_wrong else {"name": name}
        return Reply(response=JSONResponse(shown), subject=token, detail={"name": name})


def check_message(body: Any) -> dict[str, Any]:
    """What Firebase accepts; this stand-in has no topics."""
    message: Any = body.get("message") if isinstance(body, dict) else None
    if not isinstance(message, dict):
        raise _bad("message", "The message is missing.")
    if unknown := sorted(set(message) - _FIELDS):
        raise _bad(f"message.{unknown[0]}", f"Unknown name \"{unknown[0]}\" at 'message'.")
    if len([one for one in ("token", "topic", "condition") if one in message]) != 1:
        raise _bad("message", "Recipient of the message is not set, or set twice.")
    token: Any = message.get("token")
    if not isinstance(token, str) or ":" not in token or len(token) < 100:
        raise _bad("message.token", "The registration token is not a valid FCM token.")
    _check_texts(message.get("notification", {}), "notification")
    _check_texts(message.get("data", {}), "data")
    ttl: Any = message.get("android", {}).get("ttl", "0s")
    if not isinstance(ttl, str) or not ttl.removesuffix("s").isdigit() or ttl[-1:] != "s":
        raise _bad("message.android.ttl", "Invalid value for ttl.")
    if message.get("android", {}).get("priority", "normal") not in ("normal", "high"):
        raise _bad("message.android.priority", "Invalid value for priority.")
    told = {name: message.get(name) for name in ("notification", "data")}
    if len(json.dumps(told, ensure_ascii=False).encode()) > _MOST_BYTES + 100:
        raise _bad("message", "Message is too big.")
    return message


def _check_texts(group: Any, name: str) -> None:
    is_texts = isinstance(group, dict) and all(isinstance(one, str) for one in group.values())
    if not is_texts:
        raise _bad(f"message.{name}", f"Invalid value at 'message.{name}' (TYPE_STRING).")


def _bad(field: str, words: str) -> _Refusal:
    violation = {"field": field, "description": words}
    detail = {"@type": _BAD_REQUEST, "fieldViolations": [violation]}
    return _Refusal(400, words, _detail("INVALID_ARGUMENT"), detail)


def _detail(code: str) -> dict[str, Any]:
    return {"@type": _FCM_ERROR, "errorCode": code}


def _problem(status: int, message: str, *details: dict[str, Any]) -> Response:
    error = {
        "code": status,
        "message": message,
        "status": _STATUSES.get(status, "INTERNAL"),
        "details": list(details),
    }
    return JSONResponse({"error": error}, status)


def _part(text: str) -> dict[str, Any]:
    """A part of a JWT; what cannot be read is empty."""
    try:
        value = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise _bad("", "Invalid JSON payload received.") from None
