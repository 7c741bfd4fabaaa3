"""The server's TLS context: chooses the certificate for a client, and limits the TLS versions and ciphers.

Guarantees:
- A client receives the certificate for the server name that it requests (SNI). If no certificate matches the name, the
  client receives the default certificate. A client that requests the name `LOOPBACK` receives the server's own
  certificate, so the administrator's kubeconfig works with any configured certificates.
- If a certificate is replaced on disk, the next handshake uses the new certificate. If one of the certificate files
  cannot be read, the error is reported and the old certificates stay in use.
- The server requests a certificate from clients. The handshake also accepts a client without a certificate, or with a
  certificate of another authority. Each request verifies the client's certificate
  (`authn.client_certificate_authenticator`).
- TLS versions before 1.2 are refused, and TLS 1.2 is allowed only with forward-secret AEAD ciphers.

Source: apiserver `pkg/server/dynamiccertificates/named_certificates.go` and `pkg/server/options/serving.go`.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID

from ctrlmgr.authentication.followed_files import FollowedFiles
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.client_certificates import take_any_certificate
from ctrlmgr.http.tls import CertificateFiles
from ctrlmgr.metrics import FILE_RELOADS

HTTP1: Final = "http/1.1"
HTTP2: Final = "h2"
"""The ALPN names of HTTP/2 and HTTP/1.1 (RFC 7301, section 6; RFC 9113, section 3.1)."""

LOOPBACK: Final = "apiserver-loopback-client"
"""The server name for which the server uses its own certificate (apiserver `pkg/server/config_selfclient.go`)."""

CIPHERS: Final[Mapping[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""OpenSSL's names of the TLS 1.2 ciphers that can be configured; the keys are Go's names."""

OF_TLS_13: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""The ciphers of TLS 1.3, which are always enabled, as in Go."""

_DEFAULT_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


class Pair(NamedTuple):
    """The paths of a certificate (PEM, with its chain) and of its key."""

    certificate: Path
    key: Path


class NamedPair(NamedTuple):
    """A certificate and its key for some server names.

    A certificate without given names is used for the names in the certificate. A server name can begin with the
    wildcard `*.`.
    """

    pair: Pair
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class TlsOptions:
    """The TLS settings that the administrator has chosen."""

    http2: bool = True
    """Whether HTTP/2 is offered to clients."""
    default: Pair | None = None
    """The certificate for clients that request no name or an unknown name; None means the server's own certificate."""
    named: Sequence[NamedPair] = ()
    """The certificates for server names. If several certificates have the same name, the first is used."""
    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: Sequence[str] = ()
    """The ciphers for TLS 1.2 by Go's names.

    An empty list means all ciphers that are forward-secret and authenticated.
    """


class ServingContext:
    """Holds the server's `ssl.SSLContext`; its `reload` applies changed certificate files."""

    def __init__(self, files: CertificateFiles, options: TlsOptions | None = None) -> None:
        """Read the certificate files; raises `SettingsError` if a certificate and its key do not match."""
        self._files = files
        self._options = options or TlsOptions()
        self._own = Pair(files.serving, files.serving_key)
        self.context = self._new_context()
        self.context.sni_callback = self._choose
        self._by_name: Mapping[str, ssl.SSLContext] = {}
        pairs = (self._own, *filter(None, (self._options.default,)), *(each.pair for each in self._options.named))
        followed = [*(path for pair in pairs for path in pair), files.authority]
        self._followed = FollowedFiles(
            "certificates", followed, lambda status: FILE_RELOADS.labels("data_dir", status).inc()
        )
        self._load()

    def reload(self) -> bool:
        """Reload the certificate files if they have changed; return whether they were reloaded."""
        return self._followed.reload(self._load)

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._options.minimum
        chosen = [CIPHERS[name] for name in self._options.ciphers if name in CIPHERS]
        context.set_ciphers(":".join(chosen) or _DEFAULT_CIPHERS)
        context.set_alpn_protocols([HTTP2, HTTP1] if self._options.http2 else [HTTP1])
        take_any_certificate(context)
        return context

    def _load(self) -> bool:
        """Load the certificate files; raises `SettingsError` if a certificate and its key do not match."""
        by_name: dict[str, ssl.SSLContext] = {}
        if self._options.default is not None:
            by_name[LOOPBACK] = self._filled(self._new_context(), self._own)
        for pair, names in self._options.named:
            context = self._filled(self._new_context(), pair)
            for name in names or _names_in(pair.certificate):
                by_name.setdefault(name.lower(), context)
        default = self._options.default or self._own
        # Use a new context, because a failed load would leave the context that is in use with a certificate but without
        # its key.
        self._filled(self._new_context(), default)
        self._filled(self.context, default)
        self._by_name = by_name
        return True

    def _filled(self, context: ssl.SSLContext, pair: Pair) -> ssl.SSLContext:
        """Load a certificate and its key into the context, and return the context."""
        try:
            context.load_cert_chain(pair.certificate, pair.key)
            context.load_verify_locations(self._files.authority)
        except (OSError, ssl.SSLError) as error:
            files = f"{pair.certificate} and {pair.key}"
            raise SettingsError(f"the certificate and key in {files} cannot be used: {error}") from error
        return context

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Use the TLS context for the server name that a client requests."""
        name = (name or "").lower().rstrip(".")
        _, _, parent = name.partition(".")
        chosen = self._by_name.get(name) or self._by_name.get(f"*.{parent}")
        if chosen is not None:
            connection.context = chosen


def _names_in(path: Path) -> Iterator[str]:
    """Yield the common name and the DNS names of a certificate."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SettingsError(f"the certificate {path} cannot be read: {error}") from error
    yield from (str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    yield from alternatives.get_values_for_type(x509.DNSName)
