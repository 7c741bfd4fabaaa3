"""Tests of the certificate authority that signs certificates, when its files change."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.controllers.certificatesigningrequest_signing.authority_files import AuthorityFiles
from ctrlmgr.errors import SettingsError
from tests.authentication.authorities import CertificateAndKey, authority
from tests.server.authn.authenticator_calls import failures


def written(made: CertificateAndKey, certificate: Path, key: Path) -> None:
    certificate.write_bytes(made.pem)
    key.write_bytes(made.key_pem)


def test_an_invalid_file_is_counted_and_the_last_valid_one_is_used(tmp_path: Path) -> None:
    certificate, key = tmp_path / "ca.crt", tmp_path / "ca.key"
    first, second = authority("one"), authority("other one")
    written(first, certificate, key)
    files = AuthorityFiles(certificate, key)
    assert files.current().certificate == first.certificate
    written(second, certificate, key)
    assert files.current().certificate == second.certificate
    good = files.current()
    before = failures("controllers.cluster_signing_cert_file")
    certificate.write_bytes(b"nonsense")
    assert files.current() is good
    assert failures("controllers.cluster_signing_cert_file") == before + 1
    assert files.current() is good
    assert failures("controllers.cluster_signing_cert_file") == before + 1, "once for each change"


def test_an_invalid_pair_is_refused(tmp_path: Path) -> None:
    certificate, key = tmp_path / "ca.crt", tmp_path / "ca.key"
    certificate.write_bytes(authority("one").pem)
    key.write_bytes(authority("other").key_pem)
    with pytest.raises(SettingsError, match="the key does not belong to the certificate"):
        AuthorityFiles(certificate, key)
