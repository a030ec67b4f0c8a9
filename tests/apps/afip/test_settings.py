"""Settings know the real addresses, come out of the environment, and keep secrets to themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from apps.providers.afip import Credentials, Settings, Ticket

from tests.apps.afip.speech import NOON


def test_the_default_is_production() -> None:
    settings = Settings.from_env({})
    assert settings == Settings()
    assert settings.wsaa_url == "https://wsaa.afip.gov.ar/ws/services/LoginCms"
    assert settings.wsfe_url == "https://servicios1.afip.gov.ar/wsfev1/service.asmx"
    assert settings.guard_window == timedelta(minutes=2)


def test_the_environment_can_say_otherwise() -> None:
    settings = Settings.from_env(
        {
            "AFIP_ENVIRONMENT": "testing",
            "AFIP_WSFE_URL": "http://127.0.0.1:1/wsfe",
            "AFIP_CERTIFICATE": "a certificate",
            "AFIP_KEY": "a key",
        }
    )
    assert settings.wsaa_url == "https://wsaahomo.afip.gov.ar/ws/services/LoginCms"
    assert settings.wsfe_url == "http://127.0.0.1:1/wsfe"
    assert (settings.certificate_pem, settings.key_pem) == (b"a certificate", b"a key")
    assert settings.guard_window == timedelta(minutes=10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"wsaa_url": "http://wsaa.afip.gov.ar/"},
        {"wsfe_url": "ftp://127.0.0.1/"},
        {"wsfe_url": "wsfe"},
        {"timeout": timedelta(0)},
        {"guard_window": timedelta(seconds=-1)},
        {"key_pem": b"a key"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        Settings(**wrong)


def test_an_unknown_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="AFIP_ENVIRONMENT must be"):
        Settings.from_env({"AFIP_ENVIRONMENT": "staging"})


def test_secrets_are_not_shown() -> None:
    shown = repr(
        [
            Settings(certificate_pem=b"SECRET", key_pem=b"SECRET"),
            Credentials(certificate_pem=b"SECRET", key_pem=b"SECRET"),
            Ticket(
                cuit="20111111112",
                service="wsfe",
                token="SECRET",
                sign="SECRET",
                generated_at=NOON,
                expires_at=NOON,
            ),
        ]
    )
    assert "20111111112" in shown
    assert "SECRET" not in shown
