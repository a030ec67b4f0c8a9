"""An account may have several numbers; a client sends from one of them."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from apps.providers.whatsapp import Client, Permanent, Settings, Text
from apps.sandbox.whatsapp import WhatsApp


async def test_a_client_sends_from_a_number_of_the_account_and_from_no_other(
    wa: WhatsApp, settings: Settings
) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        other = Client(replace(settings, phone_number_id="42"), http)
        with pytest.raises(Permanent):
            await other.send("5491155551234", Text(body="hola"))
        wa.numbers.add("42")
        assert (await other.send("5491155551234", Text(body="hola"))).message_id
