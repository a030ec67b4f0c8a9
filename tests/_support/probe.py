"""Asks a worker over HTTP as a probe does: one connection for each request, and no patience."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, NamedTuple

from prometheus_client import parser

_WITHIN_S = 30.0


class Told(NamedTuple):
    """An answer; the status is 0 where there was none."""

    status: int
    head: str = ""
    body: bytes = b""

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def problems(self) -> str:
        return " ".join(self.document["problems"])


async def get(port: int, path: str, *, accept: str = "*/*") -> Told:
    """One GET."""
    head = f"GET {path} HTTP/1.1\r\nHost: worker\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    return await send(port, head.encode())


async def send(port: int, data: bytes) -> Told:
    """Send these bytes, and read until the server closes."""
    received = b""
    with suppress(OSError):
        async with asyncio.timeout(_WITHIN_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(data)
                while part := await reader.read(65536):
                    received += part
            finally:
                writer.close()
    head, _, body = received.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    status = int(words[1]) if len(words) > 1 else 0
    return Told(status, head.decode("latin-1"), body)


async def answers(port: int, path: str, status: int) -> bool:
    return (await get(port, path)).status == status


def samples(body: bytes, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a page with this name, by the values of their labels without `app`."""
    found = {}
    for family in parser.text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            if sample.name == name:
                labels = {key: value for key, value in sample.labels.items() if key != "app"}
                found[tuple(labels.values())] = sample.value
    return found
