"""Settings come from the environment, refuse what cannot work, and keep secrets to themselves."""

from __future__ import annotations

from typing import Any

import pytest
from apps.providers.whatsapp import Settings

GIVEN = {"WHATSAPP_ACCESS_TOKEN": "EAA1", "WHATSAPP_PHONE_NUMBER_ID": "106"}


def test_they_are_read_from_the_environment() -> None:
    found = Settings.from_env(
        GIVEN
        | {
            "WHATSAPP_APP_SECRET": "s3cret",
            "WHATSAPP_VERIFY_TOKEN": "word",
            "WHATSAPP_BASE_URL": "http://localhost:1/v23.0",
        }
    )
    assert found == Settings(
        access_token="EAA1",
        phone_number_id="106",
        app_secret="s3cret",
        verify_token="word",
        base_url="http://localhost:1/v23.0",
    )


def test_the_real_service_is_the_default() -> None:
    assert Settings.from_env(GIVEN).base_url == "https://graph.facebook.com/v23.0"


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_missing_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be set"):
        Settings.from_env({key: value for key, value in GIVEN.items() if key != name})


def test_secrets_do_not_show() -> None:
    shown = repr(
        Settings(access_token="EAA1", phone_number_id="1", app_secret="s3c", verify_token="word")
    )
    assert not any(secret in shown for secret in ("EAA1", "s3c", "word"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"access_token": ""},
        {"phone_number_id": ""},
        {"phone_number_id": "1/../2"},
        {"base_url": "http://graph.facebook.com"},
        {"base_url": "graph.facebook.com"},
        {"timeout_s": 0},
        {"most_media_bytes": 0},
    ],
)
def test_what_could_not_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        Settings(**{"access_token": "x", "phone_number_id": "1", **wrong})
