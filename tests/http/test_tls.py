"""Tests with real certificates and real TLS handshakes, over a pair of memory buffers."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from ctrlmgr.authentication.x509_verification import certificate_user, vouch
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.client_certificates import presented_certificates
from ctrlmgr.http.tls import (
    CertificateFiles,
    ensure_certificates,
    issue_client_certificate,
)
from ctrlmgr.http.tls_context import ServingContext
from ctrlmgr.testing import FakeClock
from tests.authentication.authorities import NOW, SERVER, authority, make, subject
from tests.server.authn.authenticator_calls import failures

NAMES = ["localhost", "127.0.0.1", "::1"]


@pytest.fixture
def clock() -> FakeClock:
    from ctrlmgr.clock import SystemClock

    return FakeClock(SystemClock().now())  # OpenSSL compares with the system time


@pytest.fixture
def files(tmp_path: Path, clock: FakeClock) -> CertificateFiles:
    return ensure_certificates(tmp_path / "pki", NAMES, clock=clock)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "localhost") -> ssl.SSLObject:
    """Return the server's side of a finished handshake; raise the error with which either side
    refuses the handshake.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    calling = client.wrap_bio(to_client, to_server, server_hostname=name)
    waiting = [calling, serving]
    for _ in range(20):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    return serving


def client_of(files: CertificateFiles) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files.authority))


@pytest.mark.parametrize("name", NAMES)
def test_a_client_that_trusts_the_authority_accepts_every_name(files: CertificateFiles, name: str) -> None:
    handshake(ServingContext(files).context, client_of(files), name)


def test_another_name_is_not_accepted(files: CertificateFiles) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(ServingContext(files).context, client_of(files), "example.com")


def test_keys_are_readable_only_by_their_owner(files: CertificateFiles) -> None:
    assert files.directory.stat().st_mode & 0o777 == 0o700
    for path in files.directory.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in files.directory.iterdir()} == {"ca.crt", "ca.key", "server.crt", "server.key"}


def contents(files: CertificateFiles) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files.directory.iterdir()}


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def test_a_valid_certificate_is_kept(files: CertificateFiles, clock: FakeClock) -> None:
    before = contents(files)
    ensure_certificates(files.directory, NAMES[:2], clock=clock)
    assert contents(files) == before


def test_a_new_name_or_an_expiring_certificate_creates_a_new_one(files: CertificateFiles, clock: FakeClock) -> None:
    before = contents(files)
    ensure_certificates(files.directory, [*NAMES, "more.example.com"], clock=clock)
    named = contents(files)
    assert changed(before, named) == {"server.crt", "server.key"}
    clock.step(timedelta(days=336).total_seconds())
    ensure_certificates(files.directory, NAMES, clock=clock)
    assert changed(named, contents(files)) == {"server.crt", "server.key"}


def test_an_incomplete_pair_is_recreated(files: CertificateFiles, clock: FakeClock, tmp_path: Path) -> None:
    other = ensure_certificates(tmp_path / "other", NAMES, clock=clock)
    files.serving_key.write_bytes(other.serving_key.read_bytes())
    ensure_certificates(files.directory, NAMES, clock=clock)
    handshake(ServingContext(files).context, client_of(files))


def test_a_certificate_of_another_authority_is_kept(files: CertificateFiles, clock: FakeClock, tmp_path: Path) -> None:
    other = ensure_certificates(tmp_path / "other", ["own.example.com"], clock=clock)
    files.serving.write_bytes(other.serving.read_bytes())
    files.serving_key.write_bytes(other.serving_key.read_bytes())
    before = contents(files)
    ensure_certificates(files.directory, NAMES, clock=clock)
    assert contents(files) == before


def load_client(context: ssl.SSLContext, tmp_path: Path, pair: tuple[bytes, bytes]) -> None:
    (tmp_path / "client.crt").write_bytes(pair[0])
    (tmp_path / "client.key").write_bytes(pair[1])
    context.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")


def test_a_client_certificate_is_available(files: CertificateFiles, clock: FakeClock, tmp_path: Path) -> None:
    client = client_of(files)
    load_client(client, tmp_path, issue_client_certificate(files, "jane", ["system:masters", "dev"], clock=clock))
    presented = presented_certificates(handshake(ServingContext(files).context, client))
    own = x509.load_pem_x509_certificate(files.authority.read_bytes())
    user = certificate_user(vouch(presented, [own], clock.now() / 1_000_000).leaf)
    assert user is not None
    assert (user.name, user.groups) == ("jane", ("system:masters", "dev"))


def test_without_a_client_certificate_none_is_available(files: CertificateFiles) -> None:
    assert presented_certificates(handshake(ServingContext(files).context, client_of(files))) == ()
    assert presented_certificates(None) == ()


def test_intermediate_certificates_are_available(files: CertificateFiles, tmp_path: Path) -> None:
    root = authority()
    link = authority("a link", root)
    carol = make(subject("carol"), link)
    client = client_of(files)
    load_client(client, tmp_path, (carol.pem + link.pem, carol.key_pem))
    assert presented_certificates(handshake(ServingContext(files).context, client)) == (carol.der, link.der)


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_handshake_accepts_every_client_certificate(
    files: CertificateFiles, tmp_path: Path, tls: ssl.TLSVersion
) -> None:
    own = authority()
    for stranger in (
        make(subject("admin", ["system:masters"])),
        make(subject("admin"), own, ends=NOW - timedelta(hours=1)),
        make(subject("admin"), own, usages=[SERVER]),
    ):
        client = client_of(files)
        client.maximum_version = tls
        load_client(client, tmp_path, (stranger.pem, stranger.key_pem))
        assert presented_certificates(handshake(ServingContext(files).context, client)) == (stranger.der,)


def test_a_client_needs_the_key_of_its_certificate(files: CertificateFiles, tmp_path: Path) -> None:
    carol, other = make(subject("carol")), make(subject("other"))
    with pytest.raises(ssl.SSLError, match="KEY_VALUES_MISMATCH"):
        load_client(client_of(files), tmp_path, (carol.pem, other.key_pem))


def test_tls_older_than_1_2_is_refused(files: CertificateFiles) -> None:
    assert ServingContext(files).context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_new_files_are_loaded(files: CertificateFiles, clock: FakeClock, tmp_path: Path) -> None:
    serving = ServingContext(files)
    assert not serving.reload()
    ensure_certificates(files.directory, [*NAMES, "more.example.com"], clock=clock)
    assert serving.reload()
    handshake(serving.context, client_of(files), "more.example.com")


def test_invalid_files_keep_the_old_ones(files: CertificateFiles) -> None:
    serving = ServingContext(files)
    before = failures("data_dir")
    files.serving.write_bytes(b"not a certificate")
    assert not serving.reload()
    assert failures("data_dir") == before + 1
    handshake(serving.context, client_of(files))


def test_an_unusable_directory_is_reported(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "pki").write_text("a file")
    with pytest.raises(SettingsError, match=r"data_dir: the certificates in .*pki cannot be used"):
        ensure_certificates(tmp_path / "pki", NAMES, clock=clock)
