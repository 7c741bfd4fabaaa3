"""Tests of client certificates after their authority was removed, or after they expired."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authentication.user import CredentialsRefused
from ctrlmgr.authentication.x509_verification import VerifiedCertificate, vouch
from ctrlmgr.server.authn import client_certificate_authenticator
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts
from ctrlmgr.server.authn.authorities import AuthorityFiles
from ctrlmgr.server.authn.client_certificate_authenticator import ClientCertificates
from ctrlmgr.testing import FakeClock
from tests.authentication.authorities import NOW, CertificateAndKey, authority, make, subject
from tests.server.authn.authenticator_calls import failures


def written(path: Path, *authorities: CertificateAndKey) -> None:
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_bytes(b"".join(each.pem for each in authorities))
    assert (path.stat().st_mtime_ns, path.stat().st_size) != (before, 0)


def user_name(certificates: ClientCertificates, presented: CertificateAndKey) -> str:
    user = asyncio.run(certificates.authenticate(RequestParts(HeaderLines(), [presented.der])))
    return user.name if user is not None else ""


def test_a_replaced_authority_is_no_longer_trusted(tmp_path: Path) -> None:
    path, old, new = tmp_path / "ca.crt", authority("old"), authority("new one")
    written(path, old)
    files = AuthorityFiles("client_ca_file", [path])
    certificates = ClientCertificates(files, clock=FakeClock(int(NOW.timestamp() * 1_000_000)))
    alice, bob = make(subject("alice"), old), make(subject("bob"), new)
    assert user_name(certificates, alice) == "alice"
    with pytest.raises(CredentialsRefused):
        user_name(certificates, bob)
    written(path, new)
    assert files.reload()
    assert user_name(certificates, bob) == "bob"
    with pytest.raises(CredentialsRefused):
        user_name(certificates, alice)
    before = failures("client_ca_file")
    path.write_bytes(b"nonsense")
    assert not files.reload()
    assert failures("client_ca_file") == before + 1
    assert user_name(certificates, bob) == "bob", "what cannot be read changes nothing"


def test_a_certificate_is_refused_from_its_expiry_on(tmp_path: Path) -> None:
    path, ca = tmp_path / "ca.crt", authority()
    written(path, ca)
    clock = FakeClock(int(NOW.timestamp() * 1_000_000))
    certificates = ClientCertificates(AuthorityFiles("client_ca_file", [path]), clock=clock)
    alice = make(subject("alice"), ca, ends=NOW + timedelta(seconds=60))
    assert user_name(certificates, alice) == "alice"
    clock.step(61.0)
    with pytest.raises(CredentialsRefused):
        user_name(certificates, alice)


def test_a_certificate_without_a_name_has_no_user(tmp_path: Path) -> None:
    path, ca = tmp_path / "ca.crt", authority()
    written(path, ca)
    clock = FakeClock(int(NOW.timestamp() * 1_000_000))
    certificates = ClientCertificates(AuthorityFiles("client_ca_file", [path]), clock=clock)
    assert user_name(certificates, make(subject(None, ["system:masters"]), ca)) == ""


def test_a_refused_certificate_is_not_verified_again_for_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ca.crt"
    written(path, authority())
    clock = FakeClock(int(NOW.timestamp() * 1_000_000))
    certificates = ClientCertificates(AuthorityFiles("client_ca_file", [path]), clock=clock)
    mallory = make(subject("mallory"), authority("another"))
    verified: list[float] = []

    def counted(presented: Sequence[bytes], authorities: Sequence[x509.Certificate], now: float) -> VerifiedCertificate:
        verified.append(now)
        return vouch(presented, authorities, now)

    monkeypatch.setattr(client_certificate_authenticator, "vouch", counted)
    for seconds in (0.0, 9.0, 2.0):
        clock.step(seconds)
        with pytest.raises(CredentialsRefused):
            user_name(certificates, mallory)
    assert [round(each - NOW.timestamp()) for each in verified] == [0, 11]
