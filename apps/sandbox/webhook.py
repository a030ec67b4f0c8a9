"""Webhooks to this machine: told once and noted in a ledger, or in the background until taken."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar
from urllib.parse import urlsplit

import httpx

from apps.sandbox.ledger import Ledger

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0, 60.0)
"""Seconds between attempts. The real services wait for minutes, then hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One request that is signed; it can be sent again as it is."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    status: int | None = None
    """What the receiver answered; None if it did not."""

    @property
    def subject(self) -> str:
        """As the ledger names it."""
        return self.url


W = TypeVar("W", bound=Webhook)


class Notifier:
    """Sends the webhooks of one stand-in."""

    def __init__(self, ledger: Ledger, *, within_s: float, taken: Collection[int] = (200,)) -> None:
        self._ledger, self._within_s, self._taken = ledger, within_s, taken
        self.http: httpx.AsyncClient | None = None
        """Whose connections are used; None: new ones each time."""

    async def send(self, webhook: W, *, forgery: str | None = None, is_replay: bool = False) -> W:
        """Send one, to this machine only; with what the receiver answered."""
        check_local(webhook.url)
        began_at = time.monotonic()
        sent = replace(webhook, status=await self._post(webhook))
        self._ledger.note(
            "notify",
            "ok" if self.is_taken(sent) else "refused" if sent.status else "unanswered",
            began_at=began_at,
            subject=sent.subject,
            status=sent.status,
            forgery=forgery,
            is_replay=is_replay,
        )
        return sent

    def is_taken(self, webhook: Webhook) -> bool:
        """Whether it need not be sent again."""
        return webhook.status in self._taken

    async def ask(self, url: str, query: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and the text of an answer; None if there is none."""
        check_local(url)
        response = await self._request("GET", url, params=dict(query))
        return None if response is None else (response.status_code, response.text)

    async def _post(self, webhook: Webhook) -> int | None:
        response = await self._request(
            "POST", webhook.url, content=webhook.body, headers=dict(webhook.headers)
        )
        return None if response is None else response.status_code

    async def _request(self, method: str, url: str, **content: object) -> httpx.Response | None:
        try:
            if self.http is not None:
                return await _ask(self.http, method, url, self._within_s, content)
            async with new_client() as http:
                return await _ask(http, method, url, self._within_s, content)
        except httpx.HTTPError:
            return None


def new_client() -> httpx.AsyncClient:
    """Of plain HTTP on loopback: no certificates are read."""
    return httpx.AsyncClient(trust_env=False, verify=False)  # noqa: S501 - nothing leaves the machine


async def _ask(
    http: httpx.AsyncClient, method: str, url: str, within_s: float, content: Mapping[str, object]
) -> httpx.Response:
    return await http.request(method, url, timeout=within_s, **content)  # pyright: ignore[reportArgumentType] - httpx's own


def check_local(url: str) -> None:
    """Refuse to send to another machine."""
    if urlsplit(url).hostname not in _LOOPBACK:
        raise ValueError("url must be on loopback")


class Full(Exception):
    """Too many webhooks wait."""


class Courier:
    """Tells in the background what has happened, again until it is taken, a few times at most.

    So a receiver that is slow or down holds up nobody: some are told at once, the others wait, and
    beyond `most` of them no more is taken.
    """

    def __init__(
        self, *, pauses: Sequence[float] = PAUSES, at_once: int = 50, most: int = 10_000
    ) -> None:
        self._pauses, self._most = pauses, most
        self._places = asyncio.Semaphore(at_once)
        self._tasks: set[asyncio.Task[None]] = set()
        self.taken = self.given_up = 0

    @property
    def waiting(self) -> int:
        """How many are neither taken nor given up."""
        return len(self._tasks)

    @property
    def is_full(self) -> bool:
        """Whether no more is taken."""
        return self.waiting >= self._most

    def tell(self, attempt: Callable[[], Awaitable[bool]]) -> None:
        """Make attempts until one says that it was taken."""
        if self.is_full:
            raise Full(f"{self._most} webhooks wait already")
        task = asyncio.create_task(self._tell(attempt))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, attempt: Callable[[], Awaitable[bool]]) -> None:
        for pause in (0.0, *self._pauses):
            await asyncio.sleep(pause)
            async with self._places:
                if await attempt():
                    self.taken += 1
                    return
        self.given_up += 1

    async def close(self) -> None:
        """Give up what waits."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
