"""Tests of the certificate, the TLS versions and the ciphers that the server offers to clients."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from ctrlmgr.errors import SettingsError
from ctrlmgr.http.tls import CertificateFiles, ensure_certificates
from ctrlmgr.http.tls_context import LOOPBACK, NamedPair, Pair, ServingContext, TlsOptions
from ctrlmgr.testing import FakeClock
from tests.http.test_tls import NAMES, client_of, handshake


@pytest.fixture
def clock() -> FakeClock:
    from ctrlmgr.clock import SystemClock

    return FakeClock(SystemClock().now())  # OpenSSL compares with the system time


@pytest.fixture
def files(tmp_path: Path, clock: FakeClock) -> CertificateFiles:
    return ensure_certificates(tmp_path / "pki", [*NAMES, LOOPBACK], clock=clock)


@pytest.fixture
def other(tmp_path: Path, clock: FakeClock) -> CertificateFiles:
    """The files of another authority with a certificate for two names."""
    return ensure_certificates(tmp_path / "other", ["api.example.com", "*.apps.example.com"], clock=clock)


def pair_of(files: CertificateFiles) -> Pair:
    return Pair(files.serving, files.serving_key)


def served(context: ssl.SSLContext, name: str) -> str:
    """Return the issuer of the certificate that a client receives for a server name."""
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = client.wrap_bio(to_client, to_server, server_hostname=name)
    serving = context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [calling, serving]
    for _ in range(20):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    certificate = calling.getpeercert(binary_form=True)
    assert certificate is not None
    names = x509.load_der_x509_certificate(certificate).extensions
    alternatives = names.get_extension_for_class(x509.SubjectAlternativeName).value
    return "other" if "api.example.com" in alternatives.get_values_for_type(x509.DNSName) else "own"


def test_the_given_certificate_is_the_default_one(files: CertificateFiles, other: CertificateFiles) -> None:
    context = ServingContext(files, TlsOptions(default=pair_of(other))).context
    assert [served(context, name) for name in ("localhost", "api.example.com")] == ["other", "other"]
    handshake(context, client_of(files), LOOPBACK)


@pytest.mark.parametrize(
    ("asked", "certificate"),
    [
        ("api.example.com", "other"),
        ("API.example.com", "other"),
        ("shop.apps.example.com", "other"),
        ("a.shop.apps.example.com", "own"),
        ("localhost", "own"),
    ],
)
def test_a_client_receives_the_certificate_of_its_name(
    files: CertificateFiles, other: CertificateFiles, asked: str, certificate: str
) -> None:
    context = ServingContext(files, TlsOptions(named=[NamedPair(pair_of(other))])).context
    assert served(context, asked) == certificate


def test_given_names_replace_those_in_the_certificate(files: CertificateFiles, other: CertificateFiles) -> None:
    named = NamedPair(pair_of(other), ("elsewhere.example.com",))
    context = ServingContext(files, TlsOptions(named=[named])).context
    assert served(context, "elsewhere.example.com") == "other"
    assert served(context, "api.example.com") == "own"


def test_a_new_certificate_of_a_name_is_loaded(
    files: CertificateFiles, other: CertificateFiles, clock: FakeClock
) -> None:
    serving = ServingContext(files, TlsOptions(named=[NamedPair(pair_of(other))]))
    ensure_certificates(other.directory, ["api.example.com", "new.example.com"], clock=clock)
    assert serving.reload()
    assert served(serving.context, "new.example.com") == "other"


def test_a_key_of_another_certificate_is_refused(files: CertificateFiles, other: CertificateFiles) -> None:
    with pytest.raises(SettingsError, match=r"the certificate and key in .*server.crt and .*server.key cannot be used"):
        ServingContext(files, TlsOptions(default=Pair(other.serving, files.serving_key)))


def test_the_chosen_ciphers_and_version_apply(files: CertificateFiles) -> None:
    options = TlsOptions(ciphers=["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"])
    client = client_of(files)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    connection = handshake(ServingContext(files, options).context, client)
    cipher = connection.cipher()
    assert cipher is not None
    assert cipher[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    newer = ServingContext(files, TlsOptions(minimum=ssl.TLSVersion.TLSv1_3)).context
    with pytest.raises(ssl.SSLError):
        handshake(newer, client)
