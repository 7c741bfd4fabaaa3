"""The settings of TLS: certificates, versions and ciphers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import NAMES, TEXT, TEXTS, one_of


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """The settings of the certificates of `serve`.

    All files contain PEM; the server reloads a file when the file changes.
    """

    cert_file: Annotated[
        str,
        TEXT,
        Setting(
            "The file with the serving certificate, followed by its chain. Empty: a certificate of the server's "
            "own authority. The administrator's kubeconfig accepts both certificates.",
            flag="--tls-cert-file",
            metavar="FILE",
        ),
    ] = ""
    private_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The file with the private key of the serving certificate in tls.cert_file.",
            flag="--tls-private-key-file",
            metavar="FILE",
        ),
    ] = ""
    sni_cert_key: Annotated[
        tuple[str, ...],
        TEXTS,
        Setting(
            "More certificates with their keys, as CERT,KEY or CERT,KEY:NAME,NAME; a client that asks for one of "
            "the names receives that certificate. A name may begin with `*.`; without names, the names in the "
            "certificate apply.",
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
            "The cipher suites for TLS 1.2, by Go's names. Empty: all suites that are forward-secret and "
            "authenticated. The suites of TLS 1.3 are always enabled.",
            flag="--tls-cipher-suites",
            metavar="LIST",
        ),
    ] = ()
