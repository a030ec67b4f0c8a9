"""Where notices of alerts go: the log, a webhook, a mailbox, a chat.

Secrets may be left out here. Then they are read from the environment when a notice is sent, from
`FAENA_ALERTS_<NAME>_SECRET`, `…_PASSWORD` or `…_URL`. They are never stored on the broker or shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal
from urllib.parse import urlsplit

from faena.errors import ConfigError, shown
from faena.options.fields import check_choice, check_is, derive
from faena.values.keywords import known_fields
from faena.values.names import check_name
from faena.values.numbers import keep_whole

VARIABLES: Final = "FAENA_ALERTS"
"""What the names of environment variables with secrets begin with."""

SEVERITIES: Final = ("warning", "critical")
_PATTERN: Final = re.compile(r"[^\s*]{0,128}\*?")
_ADDRESS: Final = re.compile(r"[^\s@<>,;]+@[^\s@<>,;]+")
_LEAST_SECRET: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """What all channels have: a name, and which alerts they are for."""

    name: str
    """Unique in the app; also part of the names of environment variables."""

    severity: Literal["warning", "critical"] = "warning"
    """The least severity that is sent there."""

    subjects: Sequence[str] | None = None
    """What alerts must be about: names of queues, upstreams or nodes, or beginnings of them such as
    `afip.*`; None: anything."""

    rules: Sequence[str] | None = None
    """The rules whose alerts are sent there; None: all."""

    secrets: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check_name("channel", self.name)
        check_choice("severity", self.severity, SEVERITIES)
        for what in ("subjects", "rules"):
            given: Any = getattr(self, what)
            if given is None:
                continue
            is_list = isinstance(given, list | tuple)
            if not is_list or not all(isinstance(x, str) and _PATTERN.fullmatch(x) for x in given):  # pyright: ignore[reportUnknownVariableType]
                raise ConfigError(
                    f"{what} must be a list of names, which may end in '*', got {shown(given)}",
                    field=what,
                    value=given,
                )
            derive(self, what, tuple(given))  # pyright: ignore[reportUnknownArgumentType]

    def takes(self, rule: str, subject: str, severity: str) -> bool:
        """Whether an alert is sent there."""
        is_severe = SEVERITIES.index(severity) >= SEVERITIES.index(self.severity)
        of_rule = self.rules is None or rule in self.rules
        return is_severe and of_rule and (self.subjects is None or self._is_about(subject))

    def _is_about(self, subject: str) -> bool:
        return any(
            subject.startswith(one[:-1]) if one.endswith("*") else subject == one
            for one in self.subjects or ()
        )

    def secret_of(self, field_name: str, environ: Mapping[str, str]) -> str:
        """A secret, given here or in the environment."""
        given = getattr(self, field_name)
        variable = self.variable(field_name)
        found = environ.get(variable, "") if given is None else given
        if not found:
            raise ConfigError(
                f"{field_name} of channel {self.name} must be given, got none: set {variable}",
                field=field_name,
            )
        return str(found)

    def variable(self, field_name: str) -> str:
        """The environment variable that a secret may be in."""
        words = re.sub(r"[^A-Z0-9]", "_", f"{self.name}_{field_name}".upper())
        return f"{VARIABLES}_{words}"


@known_fields("log channel")
@dataclass(frozen=True, slots=True, kw_only=True)
class Log(Channel):
    """The log of the worker that sends the notice, under `faena.alerts`."""

    name: str = "log"
    """As of all channels."""


@known_fields("webhook channel")
@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(Channel):
    """JSON by HTTP POST, signed; see docs/alerts.md for the signature."""

    url: str | None = field(default=None, repr=False)
    """`https://…`; None: from the environment. All of its addresses must be global ones."""

    secret: str | None = field(default=None, repr=False)
    """What notices are signed with, at least 16 characters; None: from the environment."""

    allow_private: bool = False
    """Whether the address may be private or local, and the URL `http://…`."""

    def __post_init__(self) -> None:
        Channel.__post_init__(self)
        _check_web(self.url, self.allow_private)
        if self.secret is not None:
            check_secret(self.secret)


@known_fields("chat channel")
@dataclass(frozen=True, slots=True, kw_only=True)
class Chat(Channel):
    """The incoming webhook of a chat: a POST of `{"text": …}`, as Slack and others take it."""

    url: str | None = field(default=None, repr=False)
    """Its address, which is a secret; None: from the environment."""

    allow_private: bool = False
    """Whether the address may be private or local, and the URL `http://…`."""

    def __post_init__(self) -> None:
        Channel.__post_init__(self)
        _check_web(self.url, self.allow_private)


@known_fields("mail channel")
@dataclass(frozen=True, slots=True, kw_only=True)
class Mail(Channel):
    """Mails by SMTP."""

    host: str
    """The mail server."""

    sender: str
    """The address that mails come from."""

    to: Sequence[str]
    """The addresses that they go to."""

    port: int = 587
    """465 is usual with `tls="tls"`."""

    tls: Literal["starttls", "tls", "none"] = "starttls"
    """How the connection is encrypted; `none` only for a server without a password."""

    user: str | None = None
    """None: the server wants none."""

    password: str | None = field(default=None, repr=False)
    """None: from the environment, where there is a user."""

    def __post_init__(self) -> None:
        Channel.__post_init__(self)
        check_is("host", self.host, str)
        keep_whole(self, "port", least=1, most=65_535)
        check_choice("tls", self.tls, ("starttls", "tls", "none"))
        to: Any = self.to
        if not isinstance(to, list | tuple) or not to:
            raise ConfigError(
                f"to must be a list of mail addresses, got {shown(to)}", field="to", value=to
            )
        for what, one in (("sender", self.sender), *(("to", one) for one in to)):  # pyright: ignore[reportUnknownVariableType]
            if not isinstance(one, str) or not _ADDRESS.fullmatch(one):
                raise ConfigError(
                    f"{what} must be a mail address such as ops@example.org, got {shown(one)}",
                    field=what,
                    value=one,
                )
        derive(self, "to", tuple(to))  # pyright: ignore[reportUnknownArgumentType]
        if self.tls == "none" and self.user is not None:
            raise ConfigError(
                "tls must be 'starttls' or 'tls' with a user, got 'none': the password would be "
                "sent in the open",
                field="tls",
                value=self.tls,
            )


def check_secret(secret: Any) -> str:
    """Refuse one that can be guessed; the value is not shown."""
    if not isinstance(secret, str) or len(secret) < _LEAST_SECRET:
        raise ConfigError(
            f"secret must be a string of at least {_LEAST_SECRET} characters", field="secret"
        )
    return secret


def _check_web(url: Any, allow_private: Any) -> None:
    check_is("allow_private", allow_private, bool)
    if url is not None:
        check_url(url, allow_private=allow_private)


def check_url(url: Any, *, allow_private: bool) -> None:
    """Refuse what is no web address, or is not encrypted; it may be secret and is not shown."""
    schemes = ("https", "http") if allow_private else ("https",)
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        is_right = parts is not None and parts.scheme in schemes and bool(parts.hostname)
        is_right = is_right and parts is not None and parts.port != 0 and not parts.username
    except ValueError:
        is_right = False
    if not is_right or not isinstance(url, str) or not url.isprintable() or " " in url:
        raise ConfigError(
            f"url must be an address such as https://example.org/hook with the scheme "
            f"{' or '.join(schemes)} and without a user",
            field="url",
        )
