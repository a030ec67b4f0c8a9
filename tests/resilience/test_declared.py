"""What a program declares of upstreams that would not do what its author thinks."""

from __future__ import annotations

import pytest

from faena import Faena
from faena.errors import ConfigError


def test_an_upstream_of_another_app_is_refused(app: Faena) -> None:
    afip = Faena("billing").upstream("afip")
    app.upstream("afip")
    words = rf"must be upstreams of app {app.name}, got afip of another app, billing"
    with pytest.raises(ConfigError, match=f"upstreams of task request {words}") as caught:

        @app.queue("invoices").task(upstreams=[afip])
        async def request() -> None: ...

    assert caught.value.field == "upstreams"
    with pytest.raises(ConfigError, match=f"upstreams of feature invoicing {words}"):
        app.feature("invoicing", upstreams=[afip])
