"""Tests of the TLS settings of the server's SSL context."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.http.tls_context import NamedPair, Pair
from ctrlmgr.serve.tls_options import tls_options
from ctrlmgr.settings import load


def test_without_settings_the_server_uses_its_generated_certificate() -> None:
    options = tls_options(load({}, {}).settings)
    assert (options.default, options.named, options.minimum) == (None, [], ssl.TLSVersion.TLSv1_2)


def test_files_names_and_version_are_read() -> None:
    given = {
        "tls.cert_file": "a.crt",
        "tls.private_key_file": "a.key",
        "tls.sni_cert_key": "b.crt,b.key:*.b.example.com,b.example.com;c.crt,c.key",
        "tls.min_version": "VersionTLS13",
    }
    options = tls_options(load(given, {}).settings)
    assert options.default == Pair(Path("a.crt"), Path("a.key"))
    assert options.named == [
        NamedPair(Pair(Path("b.crt"), Path("b.key")), ("*.b.example.com", "b.example.com")),
        NamedPair(Pair(Path("c.crt"), Path("c.key"))),
    ]
    assert options.minimum is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"tls.cert_file": "a.crt"}, "--tls-cert-file and --tls-private-key-file must be given together"),
        ({"tls.sni_cert_key": "a.crt"}, "--tls-sni-cert-key is 'a.crt'; it must be CERT,KEY"),
        ({"tls.cipher_suites": "TLS_RSA_WITH_RC4_128_SHA"}, "TLS_RSA_WITH_RC4_128_SHA is not supported; choose from"),
    ],
)
def test_unusable_files_are_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem.replace("(", r"\(")):
        tls_options(load(given, {}).settings)
