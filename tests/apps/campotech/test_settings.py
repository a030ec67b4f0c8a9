"""What the environment decides: 000 §13.2 has the flags and the names."""

from __future__ import annotations

from typing import Any

import pytest
from apps.campotech.pace import Pace
from apps.campotech.registry import ROWS, declare
from apps.campotech.settings import Settings

from faena import Faena

LEAST = {
    "CAMPOTECH_SECRETS": "s" * 32,
    "STORAGE_URL": "file:///files",
    "MP_ACCESS_TOKEN": "m",
    "WHATSAPP_ACCESS_TOKEN": "w",
    "WHATSAPP_PHONE_NUMBER_ID": "1",
    "OPENAI_API_KEY": "o",
}


def queues(**environ: str) -> dict[str, Any]:
    """The options of all queues in an environment."""
    settings = Settings.from_env(LEAST | environ)
    made = declare(Faena("campotech"), Pace(), settings.flags)
    return {name: one.options for name, one in made.items()}


def test_organisations_take_turns_and_full_queues_push_back_unless_told_otherwise() -> None:
    options = queues().values()
    assert all(one.fair for one in options)
    assert all((one.backpressure.soft, one.backpressure.hard) == (100, 500) for one in options)


@pytest.mark.parametrize("said", ["false", "0", "no", "OFF"])
def test_flags_switch_turns_and_back_pressure_off(said: str) -> None:
    options = queues(ENABLE_FAIR_SCHEDULING=said, ENABLE_BACKPRESSURE=said)
    assert all(one.backpressure is None for one in options.values())
    needed = {row.name for row in ROWS if row.needs_turns}
    assert {name for name, one in options.items() if one.fair} == needed


@pytest.mark.parametrize("name", ["ENABLE_FAIR_SCHEDULING", "ENABLE_BACKPRESSURE"])
def test_a_flag_that_is_neither_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be true or false, got 'perhaps'"):
        queues(**{name: "perhaps"})


def test_services_are_the_real_ones_until_the_environment_names_others() -> None:
    settings = Settings.from_env(LEAST)
    services = [settings.mercadopago, settings.whatsapp, settings.openai]
    addresses = [one.base_url for one in services] + [settings.afip.wsaa_url]
    assert all(one.startswith("https://") for one in addresses)
    assert (settings.push, settings.mail, settings.sms) == (None, None, None)
    moved = Settings.from_env({**LEAST, "MP_BASE_URL": "http://127.0.0.1:9"})
    assert moved.mercadopago.base_url == "http://127.0.0.1:9"


def test_no_secret_is_shown() -> None:
    told = repr(Settings.from_env({**LEAST, "CAMPOTECH_ADMIN_TOKEN": "a" * 32}))
    assert "s" * 32 not in told
    assert "a" * 32 not in told


def test_an_installation_without_secrets_is_refused() -> None:
    with pytest.raises(ValueError, match="CAMPOTECH_SECRETS must be set"):
        Settings.from_env({})
