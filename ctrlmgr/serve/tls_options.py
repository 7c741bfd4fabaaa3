"""Reads the TLS settings: the certificates, versions and ciphers that the server uses."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ctrlmgr.errors import SettingsError
from ctrlmgr.http.tls_context import CIPHERS, OF_TLS_13, NamedPair, Pair, TlsOptions
from ctrlmgr.settings import Settings

_VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


def tls_options(settings: Settings) -> TlsOptions:
    """Return the TLS options that the settings contain.

    Raises `SettingsError` for a certificate without its key, and for an unknown cipher.
    """
    tls = settings.tls
    return TlsOptions(
        http2=not settings.server.disable_http2_serving,
        default=_default_pair(tls.cert_file, tls.private_key_file),
        named=[*map(_named_pair, tls.sni_cert_key)],
        minimum=_VERSIONS[tls.min_version],
        ciphers=_known(tls.cipher_suites),
    )


def _default_pair(certificate: str, key: str) -> Pair | None:
    if bool(certificate) != bool(key):
        raise SettingsError("--tls-cert-file and --tls-private-key-file must be given together")
    return Pair(Path(certificate), Path(key)) if certificate else None


def _named_pair(text: str) -> NamedPair:
    """Parse a value `CERT,KEY[:NAME,...]` of the setting (component-base `cli/flag/namedcertkey_flag.go`)."""
    files, _, names = text.partition(":")
    certificate, comma, key = (part.strip() for part in files.partition(","))
    if not (certificate and comma and key) or "," in key:
        raise SettingsError(f"--tls-sni-cert-key is {text!r}; it must be CERT,KEY or CERT,KEY:NAME,NAME")
    return NamedPair(Pair(Path(certificate), Path(key)), tuple(name.strip() for name in names.split(",") if name))


def _known(ciphers: Sequence[str]) -> Sequence[str]:
    if unknown := [each for each in ciphers if each not in CIPHERS and each not in OF_TLS_13]:
        raise SettingsError(f"--tls-cipher-suites: {unknown[0]} is not supported; choose from {', '.join(CIPHERS)}")
    return ciphers
