"""A provider of identities on loopback, which signs with keys made at test time and can lie."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests._support.eventually import eventually

CLIENT = "faena"
SECRET = "kept between the two"


class Identities:
    """What it answers; each part can be made hostile."""

    def __init__(self) -> None:
        self.issuer = ""
        self.kid = 0
        self.codes: dict[str, dict[str, str]] = {}
        """Codes that are open → what the browser was sent with."""
        self.claims: dict[str, Any] = {"email": "ana@shop.test", "groups": ["sre", "all"]}
        self.lie: Callable[[dict[str, Any]], None] = lambda _: None
        """Changes the claims of the next tokens."""
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.asked_for_keys = self.begun = 0
        self.says = dict[str, Any]()
        """What discovery says instead."""
        self.is_down = False
        self.renew()

    def renew(self) -> None:
        """Sign with another key from now on."""
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.kid += 1

    def signed(self, claims: dict[str, Any], **more: Any) -> str:
        """A token of these claims."""
        given = {"algorithm": "RS256", "headers": {"kid": f"key-{self.kid}"}, **more}
        return jwt.encode(claims, self.key, **given)

    def authorize(self, address: str) -> dict[str, str]:
        """Somebody signs in at the page that the browser was sent to: what it comes back with."""
        query = {name: one[0] for name, one in parse_qs(urlsplit(address).query).items()}
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        self.begun += 1
        code = f"code-{self.begun}"
        self.codes[code] = query
        return {"code": code, "state": query["state"]}

    # -- what it serves ---------------------------------------------------------------------------

    async def discovery(self, _request: Request) -> Response:
        if self.is_down:
            return Response(status_code=503)
        told = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }
        return JSONResponse(told | self.says)

    async def keys(self, _request: Request) -> Response:
        self.asked_for_keys += 1
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return JSONResponse({"keys": [public | {"kid": f"key-{self.kid}", "use": "sig"}]})

    async def token(self, request: Request) -> Response:
        form = await request.form()
        query = self.codes.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        is_ours = (form["client_id"], form["client_secret"]) == (CLIENT, SECRET)
        if query is None or not is_ours or challenge != query["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        assert form["redirect_uri"] == query["redirect_uri"]
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "u-1",
            "nonce": query["nonce"],
            "iat": now,
            "exp": now + 300,
            **self.claims,
        }
        self.lie(claims)
        return JSONResponse({"token_type": "Bearer", "id_token": self.sign(claims)})


@asynccontextmanager
async def identities() -> AsyncIterator[Identities]:
    """One that listens on a port of its own."""
    made = Identities()
    routes = [
        Route("/.well-known/openid-configuration", made.discovery),
        Route("/keys", made.keys),
        Route("/token", made.token, methods=["POST"]),
    ]
    async with serving_http(Starlette(routes=routes)) as address:
        made.issuer = address
        yield made


@asynccontextmanager
async def serving_http(application: Any, **config: Any) -> AsyncIterator[str]:
    """A real server on loopback; its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    given = {"log_level": "warning", "access_log": False, "lifespan": "off", **config}
    server = uvicorn.Server(uvicorn.Config(application, **given))
    server.install_signal_handlers = lambda: None  # pyright: ignore[reportAttributeAccessIssue]
    running = asyncio.create_task(server.serve([listening]))
    try:

        async def is_there() -> bool:
            return server.started or running.done()

        await eventually(is_there)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        listening.close()
