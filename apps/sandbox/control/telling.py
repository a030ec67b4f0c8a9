"""Where news are told, and who tells them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from apps.sandbox.webhook import Courier, Full, check_local

SERVICES: Final = ("whatsapp", "mercadopago")


class Telling:
    """The webhooks of a sandbox."""

    def __init__(self, courier: Courier) -> None:
        self.courier = courier
        self.urls: dict[str, str] = {}

    def set(self, urls: dict[str, str]) -> None:
        """Tell the news of services to other addresses from now on."""
        for service, url in urls.items():
            if service not in SERVICES:
                raise ValueError(f"webhooks must be of {' or '.join(SERVICES)}, got {service!r}")
            check_local(url)
        self.urls |= urls

    def url(self, service: str, own: str = "") -> str:
        """Where news of a service go: to the address of its own, else to that of all."""
        if self.courier.is_full:
            raise Full("too many webhooks wait")
        if not own and service not in self.urls:
            raise ValueError(f"the webhook of {service} must be set first")
        url = own or self.urls[service]
        check_local(url)
        return url

    def tell(self, attempt: Callable[[], Awaitable[bool]]) -> None:
        """Until it is taken."""
        self.courier.tell(attempt)
