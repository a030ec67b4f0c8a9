"""Reads the broker's address from URLs and environment variables, before any connection.

    valkey://[user:password@]host[:6379][/db]        also redis://; valkeys:// and rediss:// are TLS
    unix:///run/valkey.sock[?db=0]
    redis+sentinel://[user:password@]host[:26379],…/service[/db]
    redis+cluster://[user:password@]host[:6379],…

An `Address` is a value: it opens nothing and resolves no names. Its text never shows a password,
and neither does any error raised here, however broken the URL.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NoReturn
from urllib.parse import parse_qsl, quote, unquote

from faena.errors import ConfigError, nearest

Kind = Literal["direct", "unix", "sentinel", "cluster"]
Verify = Literal["full", "ca", "none"]

_PLAIN = ("valkey", "redis")
_SECURE = ("valkeys", "rediss")
_TLS_OPTIONS = frozenset({"ca", "cert", "key", "verify"})
_SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})
_EXAMPLES: dict[Kind, str] = {
    "direct": "valkey://user:password@localhost:6379/0",
    "unix": "unix:///run/valkey.sock?db=0",
    "sentinel": "valkey+sentinel://host1:26379,host2:26379/service/0",
    "cluster": "valkey+cluster://host1:6379,host2:6379",
}
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.%]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>\d+))?")


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """One listening server: a host and port, or a Unix socket when `path` is set."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """True when traffic to it cannot leave the machine."""
        if self.path or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How the server's certificate is verified, and the client's own certificate."""

    ca: str | None = None  # PEM file of trusted roots; None: the system's
    cert: str | None = None  # PEM file of our own certificate, where the server asks for one
    key: str | None = None  # its private key, when not in the same file
    verify: Verify = "full"  # "ca" skips the host name, "none" trusts anybody


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A parsed broker URL."""

    kind: Kind
    nodes: tuple[Node, ...]  # sentinels for "sentinel", seeds for "cluster"
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    service: str | None = None  # the primary's name, sentinel only
    sentinel_username: str | None = None  # sentinels have credentials of their own
    sentinel_password: str | None = field(default=None, repr=False)
    tls: Tls | None = None

    @classmethod
    def parse(cls, url: str, *, source: str = "url") -> Address:
        """Read a URL; `source` names where it came from in an error."""
        if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's
            raise ConfigError(
                f"{source} must be a string such as {_EXAMPLES['direct']}, "
                f"got {type(url).__name__}",
                field=source,
            )
        return _Parser(url, source).read()

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Address | None:
        """FAENA_URL, else REDIS_URL, else REDIS_HOST, _PORT, _PASSWORD, _TLS; None without any."""
        for name in ("FAENA_URL", "REDIS_URL"):
            if environ.get(name):
                return cls.parse(environ[name], source=name)
        if not (environ.get("REDIS_HOST") or environ.get("REDIS_PORT")):
            return None
        return _from_parts(environ)

    @property
    def is_local(self) -> bool:
        """True when traffic to it cannot leave the machine."""
        return all(node.is_local for node in self.nodes)

    def __str__(self) -> str:
        if self.kind == "unix":
            return f"unix://{quote(self.nodes[0].path)}?db={self.db}"
        scheme = "valkeys" if self.tls else "valkey"
        suffix = "" if self.kind == "direct" else f"+{self.kind}"
        user = f"{quote(self.username or '', safe='')}:***@" if self.password else ""
        path = f"/{quote(self.service, safe='')}" if self.service else ""
        path += f"/{self.db}" if self.db else ""
        return f"{scheme}{suffix}://{user}{','.join(map(str, self.nodes))}{path}"


def mask(url: str) -> str:
    """The URL for a log: credentials are hidden, even if the URL is malformed."""
    if "://" not in url and (begun := _begun(url)):
        return f"{begun}***"
    scheme, mark, rest = url.partition("://") if "://" in url else ("", "", url)
    if "@" in scheme:
        return "***"
    _, at, tail = rest.rpartition("@")
    hosts = re.split(r"[/?]", tail, maxsplit=1)[0]
    if not at and hosts and not all(_HOST.fullmatch(host) for host in hosts.split(",")):
        return f"{scheme}{mark}***"
    shown = re.sub(r"(password=)[^&]*", r"\1***", tail)
    return f"{scheme}{mark}{'***@' if at else ''}{shown}"


class _Parser:
    """Parses one URL; keeps the masked URL, so that every error can show it."""

    def __init__(self, url: str, source: str) -> None:
        self._url = url
        self._source = source
        self._kind: Kind = "direct"

    def read(self) -> Address:
        scheme, mark, rest = self._url.partition("://")
        if not mark:
            self._refuse_scheme()
        is_secure = self._read_scheme(scheme.lower())
        if "#" in rest:
            self._refuse("must not contain '#' (write %23)")
        rest, _, query = rest.partition("?")
        authority, _, path = rest.partition("/")
        userinfo, _, hosts = authority.rpartition("@")
        user, _, password = userinfo.partition(":")
        options = self._read_options(query, is_secure=is_secure)
        service, db = self._read_path(path, options.pop("db", None))
        return Address(
            kind=self._kind,
            nodes=self._read_nodes(hosts, path),
            db=db,
            username=unquote(user) or None,
            password=unquote(password) or None,
            service=service,
            sentinel_username=options.pop("sentinel_username", None),
            sentinel_password=options.pop("sentinel_password", None),
            tls=self._read_tls(options) if is_secure else None,
        )

    def _refuse_scheme(self) -> NoReturn:
        if begun := _begun(self._url):
            self._refuse(f"must have '://' after its scheme, and has {begun!r}")
        self._refuse("must start with a scheme such as valkey://")

    def _read_scheme(self, scheme: str) -> bool:
        if scheme == "unix":
            self._kind = "unix"
            return False
        base, plus, kind = scheme.partition("+")
        if base not in _PLAIN + _SECURE or (plus and kind not in {"sentinel", "cluster"}):
            self._refuse(f"must have a known scheme ({nearest(scheme, _schemes())})")
        if plus:
            self._kind = "sentinel" if kind == "sentinel" else "cluster"
        return base in _SECURE

    def _read_options(self, query: str, *, is_secure: bool) -> dict[str, str]:
        valid = {"db"} if self._kind != "cluster" else set[str]()
        valid |= _TLS_OPTIONS if is_secure else set()
        valid |= _SENTINEL_OPTIONS if self._kind == "sentinel" else set()
        options = dict(parse_qsl(query, keep_blank_values=True))
        for name in options:
            if name in _TLS_OPTIONS and not is_secure:
                self._refuse(f"must use a TLS scheme (valkeys:// or rediss://) for option {name!r}")
            if name not in valid:
                hint = nearest(name, valid) if valid else "this scheme takes none"
                self._refuse(f"must not have option {name!r} ({hint})")
        return options

    def _read_path(self, path: str, option: str | None) -> tuple[str | None, int]:
        if self._kind == "unix":
            return None, self._read_db(option or "")
        if self._kind == "cluster":
            if path.strip("/"):
                self._refuse("must not name a database: a cluster has only database 0")
            return None, 0
        if self._kind == "direct":
            return None, self._read_db(option or path.rstrip("/"))
        service, _, db = path.partition("/")
        if not service:
            self._refuse("must name the sentinels' service after the hosts")
        return unquote(service), self._read_db(option or db.rstrip("/"))

    def _read_db(self, text: str) -> int:
        if text and not (text.isascii() and text.isdigit()):
            self._refuse("must have a whole number as its database")
        return int(text or 0)

    def _read_nodes(self, hosts: str, path: str) -> tuple[Node, ...]:
        if self._kind == "unix":
            if hosts or not path.strip("/"):
                self._refuse("must have an absolute socket path after unix://")
            return (Node("", 0, "/" + unquote(path)),)
        names = hosts.split(",")
        if self._kind == "direct" and len(names) > 1:
            self._refuse("must name one host, or use a +sentinel or +cluster scheme for several")
        return tuple(self._read_node(name) for name in names)

    def _read_node(self, text: str) -> Node:
        found = _HOST.fullmatch(text)
        if not found and _HOST.fullmatch(text.rpartition(":")[0]):
            self._refuse("must have a port from 1 to 65535 after the host's colon")
        if not found:
            self._refuse("must have a host name or an address ([…] around IPv6)")
        default = 26379 if self._kind == "sentinel" else 6379
        port = int(found["port"] or default)
        if not 0 < port < 65536:
            self._refuse("must have a port from 1 to 65535")
        return Node(found["six"] or found["name"], port)

    def _read_tls(self, options: dict[str, str]) -> Tls:
        verify = options.get("verify", "full")
        if verify not in ("full", "ca", "none"):
            self._refuse("must have verify=full, verify=ca or verify=none")
        if "key" in options and "cert" not in options:
            self._refuse("must have option 'cert' as well as 'key'")
        return Tls(
            ca=options.get("ca"), cert=options.get("cert"), key=options.get("key"), verify=verify
        )

    def _refuse(self, rule: str) -> NoReturn:
        shown = mask(self._url)
        raise ConfigError(
            f"{self._source} {rule}, got {shown!r}; valid: {_EXAMPLES[self._kind]}",
            field=self._source,
            value=shown,
        )


def _begun(url: str) -> str:
    """A scheme that is not followed by ://, with what it is followed by; none of it is secret."""
    scheme, colon, rest = url.partition(":")
    if not colon or scheme.lower() not in _schemes():
        return ""
    return scheme + colon + rest[: len(rest) - len(rest.lstrip("/"))]


def _schemes() -> list[str]:
    bases = _PLAIN + _SECURE
    several = [f"{base}+{kind}" for base in bases for kind in ("sentinel", "cluster")]
    return ["unix", *bases, *several]


def _from_parts(environ: Mapping[str, str]) -> Address:
    host = environ.get("REDIS_HOST") or "localhost"
    port = environ.get("REDIS_PORT") or "6379"
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ConfigError(
            f"REDIS_PORT must be a port from 1 to 65535, got {port!r}",
            field="REDIS_PORT",
            value=port,
        )
    found = _HOST.fullmatch(host)
    if not (found and not found["port"]) and not _is_ipv6(host):
        raise ConfigError(
            f"REDIS_HOST must be a host name or an address, got {mask(host)!r}",
            field="REDIS_HOST",
            value=mask(host),
        )
    return Address(
        kind="direct",
        nodes=(Node(host.strip("[]"), int(port)),),
        password=environ.get("REDIS_PASSWORD") or None,
        tls=Tls() if _read_switch("REDIS_TLS", environ.get("REDIS_TLS", "")) else None,
    )


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


def _read_switch(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word in {"true", "1", "yes", "on"}:
        return True
    if word in {"", "false", "0", "no", "off"}:
        return False
    raise ConfigError(f"{name} must be true or false, got {text!r}", field=name, value=text)
