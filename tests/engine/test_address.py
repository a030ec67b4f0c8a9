"""URLs that are understood, URLs that are refused, and passwords that are never shown."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.engine.wire.address import Address, Node, Tls, mask
from faena.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("valkey://localhost", Address(kind="direct", nodes=(Node("localhost", 6379),))),
        ("redis://db.test:7000/3", Address(kind="direct", nodes=(Node("db.test", 7000),), db=3)),
        ("redis://db.test/?db=3", Address(kind="direct", nodes=(Node("db.test", 6379),), db=3)),
        ("REDIS://[::1]:7000", Address(kind="direct", nodes=(Node("::1", 7000),))),
        (
            "rediss://ana:p%40ss%2Fw%3Ard@db.test",
            Address(
                kind="direct",
                nodes=(Node("db.test", 6379),),
                username="ana",
                password="p@ss/w:rd",
                tls=Tls(),
            ),
        ),
        (
            "valkeys://:secret@db.test?ca=/etc/ca.pem&cert=/c.pem&key=/k.pem&verify=ca",
            Address(
                kind="direct",
                nodes=(Node("db.test", 6379),),
                password="secret",
                tls=Tls(ca="/etc/ca.pem", cert="/c.pem", key="/k.pem", verify="ca"),
            ),
        ),
        (
            "unix:///run/my%20app/v.sock?db=2",
            Address(kind="unix", nodes=(Node("", 0, "/run/my app/v.sock"),), db=2),
        ),
        (
            "unix://:secret@/run/v.sock",
            Address(kind="unix", nodes=(Node("", 0, "/run/v.sock"),), password="secret"),
        ),
        (
            "redis+sentinel://ana:secret@a,b:26380,[::1]:5/orders/4?sentinel_password=other",
            Address(
                kind="sentinel",
                nodes=(Node("a", 26379), Node("b", 26380), Node("::1", 5)),
                service="orders",
                db=4,
                username="ana",
                password="secret",
                sentinel_password="other",
            ),
        ),
        (
            "valkeys+sentinel://a/orders",
            Address(kind="sentinel", nodes=(Node("a", 26379),), service="orders", tls=Tls()),
        ),
        (
            "valkey+cluster://a:7000,b:7001",
            Address(kind="cluster", nodes=(Node("a", 7000), Node("b", 7001))),
        ),
        (
            "rediss+cluster://:secret@a",
            Address(kind="cluster", nodes=(Node("a", 6379),), password="secret", tls=Tls()),
        ),
    ],
)
def test_a_valid_url_is_understood(url: str, expected: Address) -> None:
    assert Address.parse(url) == expected


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "must start with a scheme"),
        ("localhost:6379", "must start with a scheme"),
        ("http://localhost", "known scheme"),
        ("valkye://localhost", "did you mean 'valkey'"),
        ("redis+sentinal://a/orders", r"did you mean 'redis\+sentinel'"),
        ("redis://", "host name"),
        ("redis://a b", "host name"),
        ("redis://::1:6379", "host name"),
        ("redis://a:port", "port from 1 to 65535"),
        ("redis://a:0", "port from 1 to 65535"),
        ("redis://a:65536", "port from 1 to 65535"),
        ("redis://a/one", "whole number"),
        ("redis://a/-1", "whole number"),
        ("redis://a/1/2", "whole number"),
        ("redis:/x", "must have '://' after its scheme, and has 'redis:/', got 'redis:/\\*\\*\\*'"),
        ("Redis:a:6379", "after its scheme, and has 'Redis:'"),
        ("redis://a,b", r"\+sentinel or \+cluster"),
        ("redis://a?timeout=3", "must not have option 'timeout'"),
        ("rediss://a?verfy=none", "did you mean 'verify'"),
        ("rediss://a?verify=maybe", "verify=full"),
        ("rediss://a?key=/k.pem", "'cert' as well as 'key'"),
        ("redis://a?ca=/ca.pem", "TLS scheme"),
        ("redis://:pa#ss@a", "%23"),
        ("redis://[::1]:x", "port from 1 to 65535"),
        ("redis+sentinel://a", "service"),
        ("redis+cluster://a/1", "database 0"),
        ("redis+cluster://a?db=1", "takes none"),
        ("unix://run/v.sock", "absolute socket path"),
        ("unix://", "absolute socket path"),
    ],
)
def test_a_wrong_url_is_refused_with_its_value_and_a_valid_one(url: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        Address.parse(url)
    assert repr(url) in str(caught.value) or "***" in str(caught.value)
    assert "; valid: " in str(caught.value)
    assert caught.value.field == "url"


_SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{_SECRET}@",
        f"redis://:{_SECRET}@a:port",
        f"redis://:{_SECRET}/more@a",
        f"redis://:{_SECRET}?more@a",
        f"redis://:{_SECRET}#more@a",
        f"redis://:{_SECRET}:6379",
        f"redis://user:{_SECRET}",
        f"user:{_SECRET}@a:6379",
        f"redis:{_SECRET}@a:6379",
        f"redis:/:{_SECRET}@a:6379",
        f"user:{_SECRET}@a://b",
        f"http://:{_SECRET}@a",
        f"redis+sentinel://a/orders/x?sentinel_password={_SECRET}",
    ],
)
def test_no_refusal_shows_a_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Address.parse(url)
    assert _SECRET not in str(caught.value)
    assert _SECRET not in str(caught.value.value)


def test_an_address_as_text_hides_its_passwords_and_parses_back_to_the_same_place() -> None:
    url = f"rediss+sentinel://ana:{_SECRET}@a,b/orders/4?sentinel_password={_SECRET}"
    address = Address.parse(url)
    assert str(address) == "valkeys+sentinel://ana:***@a:26379,b:26379/orders/4"
    assert _SECRET not in repr(address) + str(address)
    assert Address.parse(str(address)).nodes == address.nodes


@given(st.text(min_size=1), st.text())
def test_any_password_survives_percent_encoding_and_stays_hidden(password: str, user: str) -> None:
    secret = "\N{LOCK}" + password
    url = f"redis://{quote(user, safe='')}:{quote(secret, safe='')}@db.test:7000/1"
    address = Address.parse(url)
    assert address.password == secret
    assert (address.username or "") == user
    assert secret not in str(address) + repr(address)
    assert quote(secret, safe="") not in mask(url)


@pytest.mark.parametrize(
    ("url", "is_local"),
    [
        ("redis://localhost", True),
        ("redis://127.8.0.1", True),
        ("redis://[::1]", True),
        ("unix:///v.sock", True),
        ("redis://10.0.0.1", False),
        ("redis://db.test", False),
        ("redis+cluster://localhost,db.test", False),
    ],
)
def test_an_address_knows_whether_it_leaves_the_machine(url: str, is_local: bool) -> None:
    assert Address.parse(url).is_local is is_local


def test_the_environment_is_read_in_order() -> None:
    environ = {"FAENA_URL": "redis://a", "REDIS_URL": "redis://b", "REDIS_HOST": "c"}
    hosts: list[str] = []
    for name in tuple(environ):
        address = Address.from_environ(environ)
        assert address is not None
        hosts.append(address.nodes[0].host)
        environ[name] = ""
    assert hosts == ["a", "b", "c"]
    assert Address.from_environ(environ) is None
    assert Address.from_environ({"REDIS_PASSWORD": "alone"}) is None


def test_the_environment_may_name_the_parts() -> None:
    environ = {
        "REDIS_HOST": "db.test",
        "REDIS_PORT": "7000",
        "REDIS_PASSWORD": "p@ss/word",
        "REDIS_TLS": "true",
    }
    assert Address.from_environ(environ) == Address(
        kind="direct", nodes=(Node("db.test", 7000),), password="p@ss/word", tls=Tls()
    )
    assert Address.from_environ({"REDIS_PORT": "7000"}) == Address(
        kind="direct", nodes=(Node("localhost", 7000),)
    )
    assert Address.from_environ({"REDIS_HOST": "::1", "REDIS_TLS": "0"}) == Address(
        kind="direct", nodes=(Node("::1", 6379),)
    )


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"FAENA_URL": "nonsense"}, "FAENA_URL must start"),
        ({"REDIS_URL": "nonsense"}, "REDIS_URL must start"),
        ({"REDIS_HOST": "a", "REDIS_PORT": "x"}, "REDIS_PORT must be a port"),
        ({"REDIS_HOST": "a", "REDIS_PORT": "70000"}, "REDIS_PORT must be a port"),
        ({"REDIS_HOST": "a:6379"}, "REDIS_HOST must be a host name"),
        ({"REDIS_HOST": "redis://a"}, "REDIS_HOST must be a host name"),
        ({"REDIS_HOST": "a", "REDIS_TLS": "maybe"}, "REDIS_TLS must be true or false"),
    ],
)
def test_a_wrong_variable_is_named(environ: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Address.from_environ(environ)
