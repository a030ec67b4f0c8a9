"""The stand-in's WSAA refuses what the real one does, with its codes and with status 500."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from apps.providers.afip import Credentials, LoginRefused
from apps.sandbox.afip import WSAA_PATH, Afip, Authority
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs7,
)
from cryptography.x509.oid import NameOID
from defusedxml.ElementTree import fromstring

from apps.sandbox import Fault
from tests.apps.afip.speech import (
    CUIT,
    LOGIN,
    NOON,
    OTHER,
    Clock,
    Speech,
    access_request,
    envelope,
    fault_code,
)

WSAA = "cn=wsaahomo,o=afip,c=ar,serialNumber=CUIT 33693450239"
HOURS = timedelta(hours=1)
SHA256 = hashes.SHA256()
ATTACHED = [pkcs7.PKCS7Options.Binary]


def signed(
    credentials: Credentials,
    content: bytes,
    options: list[pkcs7.PKCS7Options] | None = None,
    digest: pkcs7.PKCS7HashTypes = SHA256,
) -> bytes:
    key = load_pem_private_key(credentials.key_pem, None)
    assert isinstance(key, rsa.RSAPrivateKey)
    builder = pkcs7.PKCS7SignatureBuilder().set_data(content)
    builder = builder.add_signer(credentials.certificate, key, digest)
    return builder.sign(Encoding.DER, options or ATTACHED)


def of(afip: Afip, since: datetime | None = None, until: datetime | None = None) -> Credentials:
    key, certificate = afip.issue_certificate(CUIT, since=since, until=until)
    return Credentials(certificate_pem=certificate, key_pem=key)


async def code(speech: Speech, message: bytes | str) -> str:
    return fault_code(await speech.login(message))


async def test_a_ticket_comes_as_escaped_text_and_lasts_twelve_hours(speech: Speech) -> None:
    response = await speech.login(speech.credentials.sign(access_request(NOON)))
    assert (response.status_code, response.headers["content-type"]) == (
        *(200, "text/xml; charset=utf-8"),
    )
    (returned,) = fromstring(response.content).iter(f"{{{LOGIN}}}loginCmsReturn")
    assert len(returned) == 0
    ticket = fromstring(returned.text)
    assert (ticket.tag, ticket.get("version")) == ("loginTicketResponse", "1")
    assert ticket.findtext("header/generationTime") == "2026-11-17T12:00:00.000-03:00"
    assert ticket.findtext("header/expirationTime") == "2026-11-18T00:00:00.000-03:00"
    assert ticket.findtext("header/destination") == f"SERIALNUMBER=CUIT {CUIT}, CN=faena"
    assert len(ticket.findtext("credentials/sign")) == 172


async def test_a_token_says_who_may_do_what_until_when(speech: Speech, afip: Afip) -> None:
    afip.delegate(OTHER, to=CUIT)
    token, _ = await speech.ticket()
    sso = fromstring(base64.b64decode(token))
    identity, login = sso.find("id"), sso.find("operation/login")
    assert int(identity.get("gen_time")) == NOON.timestamp() - 60
    assert int(identity.get("exp_time")) == (NOON + 12 * HOURS).timestamp()
    assert login.get("service") == "wsfe"
    assert [one.get("key") for one in login.iter("relation")] == [CUIT, OTHER]


async def test_signed_attributes_may_be_few_or_none(speech: Speech) -> None:
    for options in ([pkcs7.PKCS7Options.NoAttributes], [pkcs7.PKCS7Options.NoCapabilities]):
        content = access_request(speech.clock.at)
        message = signed(speech.credentials, content, [*ATTACHED, *options])
        assert (await speech.login(message)).status_code == 200
        speech.clock.advance(minutes=11)


@pytest.mark.parametrize("text", ["", "   ", "no base64!", "AAA", "äöü"])
async def test_a_message_must_be_base64(speech: Speech, text: str) -> None:
    assert await code(speech, text) == "ns1:cms.bad.base64"


async def test_line_breaks_in_base64_are_taken(speech: Speech) -> None:
    message = base64.encodebytes(speech.credentials.sign(access_request(NOON))).decode()
    assert "\n" in message.strip()
    assert (await speech.login(message)).status_code == 200


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b"\x30",
        b"\x30\x80\x06\x00\x00",
        b"\x30\x84\xff\xff\xff\xff",
        b"\x30\x03\x02\x01\x05",
        b"\x31\x00",
        b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01\xa0\x00",
        b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02\xa0\x00",
    ],
)
async def test_a_message_must_be_signed_data(speech: Speech, data: bytes) -> None:
    assert await code(speech, data) == "ns1:cms.bad"


async def test_a_message_that_is_cut_off_is_refused(speech: Speech) -> None:
    message = speech.credentials.sign(access_request(NOON))
    for end in range(0, len(message), 41):
        assert (await speech.login(message[:end])).status_code == 500


async def test_one_changed_bit_of_request_certificate_or_signature_is_found(
    speech: Speech, afip: Afip
) -> None:
    content = access_request(NOON)
    message = speech.credentials.sign(content)
    certificate = speech.credentials.certificate.public_bytes(Encoding.DER)
    spans = [
        (message.index(content), len(content)),
        (message.index(certificate), len(certificate)),
        (len(message) - 256, 256),
    ]
    for begin, length in spans:
        for at in range(begin, begin + length, 29):
            changed = message[:at] + bytes([message[at] ^ 0x10]) + message[at + 1 :]
            assert (await speech.login(changed)).status_code == 500, at
    assert afip.ledger.of("loginCms", "ok") == []


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([*ATTACHED, pkcs7.PKCS7Options.NoCerts], "ns1:cms.cert.notFound"),
        ([*ATTACHED, pkcs7.PKCS7Options.DetachedSignature], "ns1:cms.sign.invalid"),
    ],
)
async def test_certificate_and_content_must_be_inside(
    speech: Speech, options: list[pkcs7.PKCS7Options], wanted: str
) -> None:
    message = signed(speech.credentials, access_request(NOON), options)
    assert await code(speech, message) == wanted


async def test_other_content_under_a_signature_is_refused(speech: Speech) -> None:
    message = speech.credentials.sign(access_request(NOON))
    changed = message.replace(b"<service>wsfe<", b"<service>wsfx<")
    assert changed != message
    assert await code(speech, changed) == "ns1:cms.sign.invalid"


async def test_a_digest_that_is_not_supported_is_refused(speech: Speech) -> None:
    message = signed(speech.credentials, access_request(NOON), digest=hashes.SHA512())
    assert await code(speech, message) == "ns1:cms.sign.invalid"


async def test_another_key_than_that_of_the_certificate_is_refused(
    speech: Speech, afip: Afip
) -> None:
    other, own = of(afip), speech.credentials
    mixed = Credentials(certificate_pem=own.certificate_pem, key_pem=other.key_pem)
    assert await code(speech, mixed.sign(access_request(NOON))) == "ns1:cms.sign.invalid"


async def test_a_key_of_another_kind_is_refused(speech: Speech, authority: Authority) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = speech.credentials.certificate
    odd = (
        x509.CertificateBuilder()
        .subject_name(certificate.subject)
        .issuer_name(certificate.subject)
        .public_key(key.public_key())
        .serial_number(5)
        .not_valid_before(NOON - HOURS)
        .not_valid_after(NOON + HOURS)
        .sign(key, SHA256)
    )
    builder = pkcs7.PKCS7SignatureBuilder().set_data(access_request(NOON))
    message = builder.add_signer(odd, key, SHA256).sign(Encoding.DER, ATTACHED)
    assert await code(speech, message) == "ns1:cms.sign.invalid"


async def test_a_certificate_must_be_of_today(speech: Speech, afip: Afip) -> None:
    early = of(afip, since=NOON + timedelta(seconds=1))
    late = of(afip, since=NOON - 2 * HOURS, until=NOON - HOURS)
    assert await code(speech, early.sign(access_request(NOON))) == "ns1:cms.cert.invalid"
    assert await code(speech, late.sign(access_request(NOON))) == "ns1:cms.cert.expired"


async def test_a_certificate_of_another_authority_is_refused(speech: Speech) -> None:
    foreign = of(Afip(now=Clock()))
    message = foreign.sign(b"not even a request")
    assert await code(speech, message) == "ns1:cms.cert.untrusted"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<loginTicketRequest",
        access_request(NOON).replace(b"loginTicketRequest", b"LoginTicketRequest"),
        access_request(NOON).replace(b"<loginTicketRequest", b'<loginTicketRequest xmlns="urn:x"'),
        access_request(NOON, uniqueId=""),
        access_request(NOON, uniqueId="4294967296"),
        access_request(NOON, generationTime="2026-02-31T00:00:00-03:00"),
        access_request(NOON, generationTime="20261117T115900"),
        access_request(NOON, service="ws"),
        access_request(NOON, service="w" * 33),
        access_request(NOON, service="ws fe"),
        access_request(NOON).replace(b"<service>", b"<extra/><service>"),
        b'<!DOCTYPE x [<!ENTITY a "b">]>' + access_request(NOON),
    ],
)
async def test_a_request_must_follow_its_schema(speech: Speech, content: bytes) -> None:
    assert await code(speech, speech.credentials.sign(content)) == "ns1:xml.bad"


def later(**by: float) -> str:
    return (NOON + timedelta(**by)).isoformat()


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        (access_request(NOON, generationTime=later(seconds=1)), "generationTime.invalid"),
        (access_request(NOON, generationTime=later(hours=-25)), "generationTime.invalid"),
        (access_request(NOON, expirationTime=later(seconds=-1)), "expirationTime.expired"),
        (access_request(NOON, expirationTime=later(hours=25)), "expirationTime.invalid"),
        (access_request(NOON, source="cn=other"), "source.invalid"),
        (access_request(NOON, destination=WSAA.replace("homo", "")), "destination.invalid"),
        (access_request(NOON).replace(b'"1.0"', b'"2.0"'), "version.notSupported"),
    ],
)
async def test_times_and_names_in_a_request_are_checked(
    speech: Speech, request_: bytes, wanted: str
) -> None:
    assert await code(speech, speech.credentials.sign(request_)) == f"ns1:xml.{wanted}"


async def test_a_request_may_name_both_sides(speech: Speech) -> None:
    source = f"SERIALNUMBER=CUIT {CUIT}, CN=faena"
    content = access_request(NOON, source=source, destination=WSAA)
    assert (await speech.login(speech.credentials.sign(content))).status_code == 200


async def test_a_time_without_offset_is_one_of_argentina(speech: Speech) -> None:
    content = access_request(NOON, generationTime="2026-11-17T12:00:00")
    assert (await speech.login(speech.credentials.sign(content))).status_code == 200
    labelled_wrongly = access_request(NOON, generationTime="2026-11-17T15:00:00-03:00")
    wanted = "ns1:xml.generationTime.invalid"
    assert await code(speech, speech.credentials.sign(labelled_wrongly)) == wanted


async def test_a_certificate_must_say_whose_it_is(speech: Speech, authority: Authority) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nobody")])
    validity = NOON - HOURS, NOON + HOURS
    nameless = authority._signed(name, key.public_key(), validity, is_authority=False)
    credentials = Credentials(
        certificate_pem=nameless.public_bytes(Encoding.PEM),
        key_pem=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    message = credentials.sign(access_request(NOON))
    assert await code(speech, message) == "ns1:coe.notAuthorized"
    with pytest.raises(LoginRefused, match="serial number must be a cuit"):
        _ = credentials.cuit


async def test_a_service_must_exist_and_be_granted(speech: Speech) -> None:
    for service, wanted in (("nothing", "wsn.notFound"), ("wsfex", "coe.notAuthorized")):
        message = speech.credentials.sign(access_request(NOON, service))
        assert await code(speech, message) == f"ns1:{wanted}"


async def test_no_second_ticket_is_given_within_the_guard_window(
    speech: Speech, afip: Afip
) -> None:
    afip.registry.businesses[int(CUIT)].services.add("wsfex")

    async def ask(service: str = "wsfe") -> int:
        message = speech.credentials.sign(access_request(speech.clock.at, service))
        return (await speech.login(message)).status_code

    assert [await ask(), await ask("wsfex"), await ask()] == [200, 200, 500]
    speech.clock.advance(minutes=9, seconds=59)
    assert await ask() == 500
    speech.clock.advance(seconds=1)
    assert await ask() == 200
    refusals = [one.detail["code"] for one in afip.ledger.of("loginCms", "refused")]
    assert refusals == ["coe.alreadyAuthenticated"] * 2


async def test_the_header_with_the_action_must_be_there(speech: Speech) -> None:
    response = await speech.post(WSAA_PATH, envelope("<loginCms><in0>x</in0></loginCms>"))
    assert fault_code(response) == "ns1:Client.NoSOAPAction"


@pytest.mark.parametrize("body", ["<a", "", "<a/>", envelope("<loginCms/>"), envelope("<a/>")])
async def test_what_is_no_login_gets_an_exception(speech: Speech, body: str) -> None:
    response = await speech.post(WSAA_PATH, body, soapaction="")
    assert fault_code(response) == "soapenv:Server.userException"


async def test_the_namespace_of_a_login_does_not_matter(speech: Speech) -> None:
    body = envelope('<loginCms xmlns="urn:any"><in0>abc!</in0></loginCms>')
    response = await speech.post(WSAA_PATH, body, soapaction="urn:any")
    assert fault_code(response) == "ns1:cms.bad.base64"


async def test_a_wrong_ticket_has_a_sign_that_is_not_its_own(speech: Speech, afip: Afip) -> None:
    afip.faults.add(Fault(kind="wrong", operation="loginCms", times=1))
    wrong = await speech.ticket()
    speech.clock.advance(minutes=11)
    right = await speech.ticket()
    assert [len(sign) for _, sign in (wrong, right)] == [172, 172]
    assert wrong[1].startswith("=")


async def test_without_a_guard_window_tickets_are_given_each_time(
    authority: Authority, speech: Speech, build: Callable[..., Afip]
) -> None:
    free = build(guard_window=timedelta(0))
    async with free.serving() as url:
        free_speech = Speech(url, speech.http, speech.credentials, speech.clock)
        assert await free_speech.ticket() != await free_speech.ticket()


def test_certificates_are_made_for_real_cuits_only() -> None:
    with pytest.raises(ValueError, match="check digit"):
        Afip(now=lambda: datetime.now(UTC)).issue_certificate("20111111113")
