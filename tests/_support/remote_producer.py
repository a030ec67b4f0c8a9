"""A program that works, and one that only produces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pydantic

from faena import Faena, Job
from faena.remote import RemoteQueue


class Mail(pydantic.BaseModel):
    to: str
    copies: int = 1


class Receipt(msgspec.Struct):
    number: int


class Worker:
    """The program with the handlers."""

    def __init__(self, url: str, namespace: str, **options: Any) -> None:
        self.app = Faena("worker", url, namespace=namespace)
        self.mail = self.app.queue("mail", **options)
        self.seen: list[Any] = []

        @self.mail.task
        async def send(mail: Mail, job: Job) -> Receipt:
            self.seen.append((mail, job.tenant))
            return Receipt(mail.copies)

        @self.mail.task
        async def tick() -> None:
            self.seen.append("tick")

        self.send = send

    async def declares(self) -> None:
        await (await self.app.runtime()).engine.declare("mail")

    async def settings(self) -> dict[str, str]:
        return (await self.mail.overview()).settings


class Pair:
    """A program that works and one that only produces."""

    def __init__(self, url: str, namespace: str) -> None:
        self._where = url, namespace
        self.api = Faena("api", url, namespace=namespace)
        self.mail: RemoteQueue = self.api.remote_queue("mail")
        self.workers: list[Worker] = []

    def worker(self, **options: Any) -> Worker:
        self.workers.append(Worker(*self._where, **options))
        return self.workers[-1]


@asynccontextmanager
async def paired(url: str, namespace: str) -> AsyncIterator[Pair]:
    pair = Pair(url, namespace)
    yield pair
    for worker in reversed(pair.workers):  # the last one knows where the queue lives
        await worker.mail.obliterate(force=True)
        await worker.app.close()
    await pair.api.close()
