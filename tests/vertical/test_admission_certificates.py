"""Certificates of the webhook: made, renewed, handed over; or given as files."""

from __future__ import annotations

import ssl
from contextlib import suppress

import msgspec
import pytest
from cryptography import x509

from kubetide.units.time import after, hours, parse_rfc3339
from kubetide.vertical.admission.controller.certificates import (
    CertificateError,
    Given,
    Made,
    Pems,
    load,
    openssl_name,
    server_context,
)
from kubetide.vertical.admission.settings import Settings

START = parse_rfc3339("2026-03-02T00:00:00Z")
DAY = hours(24)


def at(days):
    return after(START, DAY * days)


def authorities(pems):
    return x509.load_pem_x509_certificates(pems.bundle)


def signer(pems):
    """Give the place of the authority in the bundle that has signed the certificate."""
    certificate = x509.load_pem_x509_certificate(pems.certificate)
    for place, authority in enumerate(authorities(pems)):
        try:
            certificate.verify_directly_issued_by(authority)
        except Exception:  # noqa: BLE001  # whatever the library says: another one has signed
            continue
        return place
    return None


def test_a_servers_certificate_is_renewed_after_two_thirds_of_its_days():
    """The same one until day 20, another one then, of the same authority."""
    made = Made(["vpa-webhook.kube-system.svc"])
    first = made.current(at(0))
    assert made.current(at(19)) == first
    second = made.current(at(20))
    assert second.certificate != first.certificate
    assert second.bundle == first.bundle


def test_certificates_name_the_service_and_are_valid_now():
    """Also for a clock that is somewhat behind."""
    pems = Made(["vpa-webhook.kube-system.svc", "127.0.0.1"]).current(at(0))
    certificate = x509.load_pem_x509_certificate(pems.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["vpa-webhook.kube-system.svc"]
    assert certificate.not_valid_before_utc.isoformat() == "2026-03-01T23:00:00+00:00"
    assert certificate.not_valid_after_utc.isoformat() == "2026-04-01T00:00:00+00:00"


def test_clients_receive_a_new_authority_before_it_signs():
    """Through two years every certificate is signed by an authority of the bundle before, and is valid."""
    made = Made(["x"])
    before = made.current(at(0))
    seen = {before.bundle}
    for day in range(1, 800):
        pems = made.current(at(day))
        certificate = x509.load_pem_x509_certificate(pems.certificate)
        place = signer(pems)
        assert place is not None
        assert authorities(pems)[place] in authorities(before)
        assert certificate.not_valid_after_utc.timestamp() * 1e9 > at(day)
        before = pems
        seen.add(pems.bundle)
    assert len(seen) > 3
    assert len(authorities(before)) <= 3


def test_brought_files_must_all_be_there(tmp_path):
    """The error names the flag and the file."""
    settings = Settings(
        client_ca_file=str(tmp_path / "ca"),
        tls_cert_file=str(tmp_path / "cert"),
        tls_private_key=str(tmp_path / "key"),
    )
    given = Given(settings)
    assert not given.exist()
    (tmp_path / "ca").write_text("x")
    assert given.exist()
    with pytest.raises(CertificateError, match="--tls-cert-file="):
        given.current(START)


def brought(tmp_path, **files):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = {
        flag: str(tmp_path / name)
        for flag, name in (("client_ca_file", "ca"), ("tls_cert_file", "cert"), ("tls_private_key", "key"))
    }
    return Settings(**paths)


def test_who_does_not_register_needs_no_authority(tmp_path):
    """Certificate and key are enough where somebody else writes the webhook, as upstream's chart does."""
    settings = brought(tmp_path, cert=b"CERT", key=b"KEY")
    elsewhere = msgspec.structs.replace(settings, register_webhook=False)
    assert Given(elsewhere).current(START) == Pems(b"", b"CERT", b"KEY")
    with pytest.raises(CertificateError, match=r"--client-ca-file=.*give all three files"):
        Given(settings).current(START)


def test_a_file_that_is_being_written_is_not_used(tmp_path):
    """An empty authority in the webhook would keep the API server from asking."""
    with pytest.raises(CertificateError, match=r"--client-ca-file=.*the file is empty"):
        Given(brought(tmp_path, ca=b"", cert=b"CERT", key=b"KEY")).current(START)


def greeted(context):
    """Give the certificate that a server with this context shows."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    client = trusting.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for end in (client, server):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return ssl.DER_cert_to_PEM_cert(client.getpeercert(binary_form=True))


def test_a_key_that_does_not_fit_is_refused():
    """With the names of both flags; the server goes on with the pair that it has."""
    one, other = Made(["x"]).current(START), Made(["x"]).current(START)
    context = server_context(Settings())
    load(context, one)
    with pytest.raises(CertificateError, match="--tls-cert-file and --tls-private-key"):
        load(context, Pems(one.bundle, other.certificate, one.key))
    assert greeted(context) == one.certificate.decode()


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"),
    ],
)
def test_cipher_suites_are_named_as_upstream_does(suite, name):
    """OpenSSL has names of its own, and knows each."""
    assert openssl_name(suite) == name
    context = server_context(Settings(tls_ciphers=suite, min_tls_version="tls1_2"))
    assert name in {cipher["name"] for cipher in context.get_ciphers()}


@pytest.mark.parametrize("separator", [",", ":"])
def test_suites_are_listed_as_upstream_takes_them(separator):
    """Commas or colons; those of TLS 1.3 may be among them, and are on in any case."""
    suites = separator.join(("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"))
    of_1_2 = [
        one["name"]
        for one in server_context(Settings(tls_ciphers=suites)).get_ciphers()
        if one["protocol"] != "TLSv1.3"
    ]
    assert of_1_2 == ["ECDHE-RSA-AES128-GCM-SHA256"]
    alone = server_context(Settings(tls_ciphers="TLS_AES_128_GCM_SHA256"))
    assert "TLS_AES_128_GCM_SHA256" in {one["name"] for one in alone.get_ciphers()}


def test_versions_and_bad_ciphers():
    """The least version is that of the flag, 1.2 where it is empty; a suite that nobody knows is an error."""
    assert server_context(Settings(min_tls_version="tls1_3")).minimum_version == ssl.TLSVersion.TLSv1_3
    assert server_context(Settings(min_tls_version="")).minimum_version == ssl.TLSVersion.TLSv1_2
    with pytest.raises(CertificateError, match="--tls-ciphers=NONSENSE"):
        server_context(Settings(tls_ciphers="NONSENSE"))
