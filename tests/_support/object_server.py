"""A server that speaks S3, on loopback, with a bucket: moto's, in a thread of this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from faena.pg.archive.store import Bucket


class ObjectServer:
    """One server; each bucket belongs to one test."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        _, port = self._server.get_host_and_port()
        self.endpoint = f"http://127.0.0.1:{port}"

    def client(self) -> Any:
        """Amazon's own client, to look at objects from outside."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
        )

    def bucket(self, name: str, prefix: str = "") -> Bucket:
        """A new one."""
        self.client().create_bucket(Bucket=name)
        return Bucket(
            name=name,
            prefix=prefix,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key="key",
            secret_key="secret",
        )

    def stop(self) -> None:
        self._server.stop()


@contextmanager
def running() -> Iterator[ObjectServer]:
    """For as long as the block lasts."""
    server = ObjectServer()
    try:
        yield server
    finally:
        server.stop()
