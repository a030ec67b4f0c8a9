"""Settings come from the environment, refuse what cannot work, and keep secrets to themselves."""

from __future__ import annotations

from typing import Any

import pytest
from apps.providers.mercadopago import Settings


def test_they_are_read_from_the_environment() -> None:
    found = Settings.from_env(
        {
            "MP_ACCESS_TOKEN": "APP_USR-1",
            "MP_WEBHOOK_SECRET": "s3cret",
            "MP_BASE_URL": "http://127.0.0.1:8080",
            "MP_ALIAS": "campo.tech.mp",
            "MP_CBU": "0" * 22,
        }
    )
    assert found == Settings(
        access_token="APP_USR-1",
        webhook_secret="s3cret",
        base_url="http://127.0.0.1:8080",
        alias="campo.tech.mp",
        cbu="0" * 22,
    )


def test_the_real_service_is_the_default() -> None:
    assert Settings.from_env({"MP_ACCESS_TOKEN": "x"}).base_url == "https://api.mercadopago.com"


def test_a_missing_token_is_named() -> None:
    with pytest.raises(ValueError, match="MP_ACCESS_TOKEN must be set"):
        Settings.from_env({})


def test_secrets_do_not_show() -> None:
    shown = repr(Settings(access_token="APP_USR-1", webhook_secret="s3cret"))
    assert "APP_USR-1" not in shown
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    "wrong",
    [
        {"access_token": ""},
        {"base_url": "http://api.mercadopago.com"},
        {"base_url": "ftp://127.0.0.1"},
        {"base_url": "https://"},
        {"timeout_s": 0},
        {"cbu": "123"},
        {"cbu": "\u0660" * 22},
        {"alias": "a b c d e f"},
    ],
)
def test_what_could_not_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        Settings(**{"access_token": "x", **wrong})
