"""TLS in front of a plain server, with a certificate made for the occasion."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme

from tests._support.proxy import Proxy


class Authority:
    """A private certificate authority; `ca` is the file a client must trust."""

    def __init__(self, directory: Path) -> None:
        self._issuer = trustme.CA()
        self.ca = directory / "ca.pem"
        self._issuer.cert_pem.write_to_path(str(self.ca))

    def terminator(self, port: int, *, name: str = "127.0.0.1", wants_cert: bool = False) -> Proxy:
        """A TLS listener that shows a certificate for `name` and relays to `port`."""
        context = self.server_context(name)
        if wants_cert:
            self._issuer.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return Proxy(port, tls=context)

    def server_context(self, name: str = "127.0.0.1") -> ssl.SSLContext:
        """Of a server that shows a certificate for `name`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._issuer.issue_cert(name).configure_cert(context)
        return context

    def client_cert(self, directory: Path) -> Path:
        """A file with a client certificate and its key."""
        path = directory / "client.pem"
        self._issuer.issue_cert("worker.test").private_key_and_cert_chain_pem.write_to_path(
            str(path)
        )
        return path
