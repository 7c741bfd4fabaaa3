"""Creates the TLS contexts of connections to kubelets.

A TLS context contains the client certificate, and the authority that verifies serving certificates.

Guarantees:
- The server reads a changed certificate file again, so that the next connection uses the new certificate.
- If no client certificate is configured, the server issues one with its own authority, and replaces the certificate
  before it expires.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings.kubeconfig import trusting
from ctrlmgr.settings.kubelet_settings import KubeletSettings

USER: Final = "kube-apiserver-kubelet-client"
"""The user of the server's own client certificates, as kubeadm names it."""
GROUPS: Final = ("system:masters",)
_RENEWS: Final = 86_400.0 * 180
"""Age in seconds at which an issued certificate is replaced; the certificate is valid for a year."""

Issue = Callable[[str, Sequence[str]], tuple[bytes, bytes]]
"""A function that returns a new client certificate for a user with groups, and the certificate's key (both PEM)."""


class Credentials:
    """Provides the TLS contexts of connections to kubelets. Used on the event loop's thread only."""

    def __init__(self, settings: KubeletSettings, issue: Issue, *, clock: Clock) -> None:
        """Read the certificate files that the settings name; raises `SettingsError` if a file cannot be used."""
        self._settings = settings
        self._issue = issue
        self._clock = clock
        self._contexts: dict[bool, ssl.SSLContext] = {}
        self._seen: tuple[object, ...] = ()
        self._issued: bytes = b""
        self._issued_at = 0.0
        if settings.client_certificate or settings.certificate_authority:
            self.context()

    def context(self, *, is_checked: bool = True) -> ssl.SSLContext:
        """Return the TLS context for a new connection; raises `SettingsError` if the files cannot be used.

        The kubelet's certificate is verified if `is_checked` is set and an authority is configured.
        """
        self._renew()
        is_checked = is_checked and bool(self._settings.certificate_authority)
        found = self._contexts.get(is_checked)
        if found is None:
            found = self._contexts[is_checked] = self._made(is_checked=is_checked)
        return found

    def _renew(self) -> None:
        """Drop TLS contexts whose files have changed or whose issued certificate is old."""
        settings = self._settings
        files = (settings.client_certificate, settings.client_key, settings.certificate_authority)
        seen = tuple(_version(each) for each in files if each)
        is_old = bool(self._issued) and self._clock.monotonic() - self._issued_at > _RENEWS
        if seen != self._seen or is_old:
            self._seen, self._issued = seen, b""
            self._contexts.clear()

    def _made(self, *, is_checked: bool) -> ssl.SSLContext:
        authority = self._settings.certificate_authority
        try:
            trusted = Path(authority).expanduser().read_bytes() if is_checked else b""
            context = trusting(trusted, self._certificate(), is_checked)
        except (OSError, ValueError) as error:
            raise SettingsError(f"kubelet: the certificates for kubelets cannot be used: {error}") from error
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _certificate(self) -> bytes:
        """Return the client certificate and its key in one PEM string."""
        file, key = self._settings.client_certificate, self._settings.client_key
        if file:
            parts = [Path(each).expanduser().read_bytes() for each in (file, key) if each]
            return b"\n".join(parts)
        if not self._issued:
            self._issued = b"\n".join(self._issue(USER, GROUPS))
            self._issued_at = self._clock.monotonic()
        return self._issued


def _version(file: str) -> tuple[int, int]:
    """Return a value that changes when a certificate file is replaced."""
    try:
        status = Path(file).expanduser().stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
