"""The settings of TLS: certificates, versions and ciphers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import NAMES, TEXT, TEXTS, one_of


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """The certificates of `serve`. All files are PEM; they are reloaded when they change."""

    cert_file: Annotated[
        str,
        TEXT,
        Setting(
            "The serving certificate, followed by its chain. Empty: one of the server's own authority. The "
            "administrator's kubeconfig works with both.",
            flag="--tls-cert-file",
            metavar="FILE",
        ),
    ] = ""
    private_key_file: Annotated[
        str, TEXT, Setting("The key of tls.cert_file.", flag="--tls-private-key-file", metavar="FILE")
    ] = ""
    sni_cert_key: Annotated[
        tuple[str, ...],
        TEXTS,
        Setting(
            "More certificates with their keys, as CERT,KEY or CERT,KEY:NAME,NAME; a client that asks for one of the "
            "names receives it. A name may begin with `*.`; without names, those in the certificate apply.",
            flag="--tls-sni-cert-key",
            metavar="CERT,KEY[:NAME,...]",
        ),
    ] = ()
    min_version: Annotated[
        str,
        one_of("VersionTLS12", "VersionTLS13"),
        Setting("The oldest version of TLS that clients may use.", flag="--tls-min-version", metavar="VERSION"),
    ] = "VersionTLS12"
    cipher_suites: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The ciphers for TLS 1.2, by Go's names. Empty: all that are forward-secret and authenticated. Those of "
            "TLS 1.3 are always on.",
            flag="--tls-cipher-suites",
            metavar="LIST",
        ),
    ] = ()
