"""Where everything is, and what may be switched off: from the environment, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from apps.campotech import alerting
from apps.campotech.registry import Flags
from apps.providers import afip, mail, mercadopago, openai, push, sms, storage, whatsapp
from apps.providers.mail.letter import check_address
from faena import Log

_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})
_BY_DEFAULT: Final = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One installation."""

    broker_url: str | None = None
    """None: as Faena finds it (FAENA_URL, REDIS_HOST …), else an embedded one."""
    database_url: str | None = None
    """None: FAENA_PG_URL, else an embedded one."""
    replica_url: str | None = None
    """What figures are read from while it is fresh; None: FAENA_PG_REPLICA_URL, else no replica."""
    directory: Path = Path(".faena")
    """Where embedded servers keep their data."""
    namespace: str = "campotech"
    secrets: tuple[str, ...] = field(repr=False)
    """Private keys of organisations are sealed with the first; all can open them."""
    admin_token: str = field(default="", repr=False)
    """What administrators show to the HTTP API; without it nobody is one."""
    has_link: bool = False
    """Whether a link lets its reader into the dashboard: for demonstrations."""
    public_url: str = _BY_DEFAULT
    """Where the HTTP API is seen from outside."""
    recordings_url: str = _BY_DEFAULT
    """Where recordings of jobs may be fetched from: only its host is asked."""
    costs_to: tuple[str, ...] = ()
    """Who is mailed each morning what services have cost."""
    speed: float = 1.0
    """How much faster than real time it goes: for the demo and for load tests."""
    flags: Flags = field(default_factory=Flags)
    storage: storage.Settings
    """Where PDFs, recordings and photos are."""
    afip: afip.Settings
    mercadopago: mercadopago.Settings
    whatsapp: whatsapp.Settings
    """The number is that of each organisation; the one named here is not used."""
    openai: openai.Settings
    ai_budget: str | None = None
    """What a day of OpenAI may cost, such as "20 USD"; None: as the provider has it."""
    push: push.Settings | None = None
    """None, here and below: nobody is told in this way."""
    mail: mail.Settings | None = None
    sms: sms.Settings | None = None
    alert_channels: tuple[alerting.Channel, ...] = (Log(),)
    """Where operators are told that something is wrong."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read them; raises ValueError that names the variable which is wrong or missing."""
        secrets = tuple(filter(None, environ.get("CAMPOTECH_SECRETS", "").split(",")))
        if not secrets:
            raise ValueError(
                "CAMPOTECH_SECRETS must be set: 32 random characters or more, several with commas"
            )
        public_url = environ.get("CAMPOTECH_PUBLIC_URL", _BY_DEFAULT).rstrip("/")
        account = mail.Settings.from_env(environ) if "SMTP_HOST" in environ else None
        return cls(
            broker_url=environ.get("CAMPOTECH_BROKER_URL"),
            database_url=environ.get("CAMPOTECH_DATABASE_URL"),
            replica_url=environ.get("CAMPOTECH_REPLICA_URL"),
            directory=Path(environ.get("CAMPOTECH_DIRECTORY", ".faena")),
            namespace=environ.get("CAMPOTECH_NAMESPACE", "campotech"),
            secrets=secrets,
            admin_token=environ.get("CAMPOTECH_ADMIN_TOKEN", ""),
            has_link=_flag(environ, "CAMPOTECH_DASHBOARD_LINK", default="false"),
            public_url=public_url,
            recordings_url=environ.get("CAMPOTECH_RECORDINGS_URL", public_url),
            costs_to=_addresses(environ, "CAMPOTECH_COSTS_TO"),
            speed=_number(environ, "CAMPOTECH_SPEED", 1.0),
            flags=Flags(
                is_fair=_flag(environ, "ENABLE_FAIR_SCHEDULING"),
                has_backpressure=_flag(environ, "ENABLE_BACKPRESSURE"),
                lease=environ.get("CAMPOTECH_LEASE", "30s"),
            ),
            storage=storage.Settings.from_env(environ),
            afip=afip.Settings.from_env(environ),
            mercadopago=mercadopago.Settings.from_env(environ),
            whatsapp=whatsapp.Settings.from_env(environ),
            openai=openai.Settings.from_env(environ),
            ai_budget=environ.get("OPENAI_DAILY_BUDGET"),
            push=push.Settings.from_env(environ) if "FCM_SERVICE_ACCOUNT" in environ else None,
            mail=account,
            sms=sms.Settings.from_env(environ) if "TWILIO_ACCOUNT_SID" in environ else None,
            alert_channels=alerting.from_env(environ, account),
        )


def _flag(environ: Mapping[str, str], name: str, default: str = "true") -> bool:
    given = environ.get(name, default).lower()
    if given not in _TRUE | _FALSE:
        raise ValueError(f"{name} must be true or false, got {given!r}")
    return given in _TRUE


def _addresses(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    given = filter(None, (one.strip() for one in environ.get(name, "").split(",")))
    return tuple(check_address(name, one) for one in given)


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    given = environ.get(name)
    try:
        return default if given is None else float(given)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {given!r}") from None
