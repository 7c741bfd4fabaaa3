"""Provides the client certificate with which this server authenticates to extension API servers, as a front proxy.

Guarantees:
- If no certificate is configured, the server issues a certificate with an authority that signs nothing else. Only the
  owner of the key file can read this file.
- If a certificate is replaced on disk, the next connection uses the new certificate. If the new certificate cannot be
  read, the error is reported and the old certificate stays in use.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

from ctrlmgr.authentication.followed_files import FollowedFiles
from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.tls import CertificateFiles, ensure_authority, issue_client_certificate, write_private
from ctrlmgr.metrics import FILE_RELOADS

NAME: Final = "front-proxy-client"
"""The common name of a front-proxy certificate that this server issues."""
_AUTHORITY: Final = "ctrlmgr-front-proxy-ca"
_RENEW_BEFORE: Final = timedelta(days=30)
_SETTING: Final = "proxy_client_cert_file"


class FrontProxyCertificate:
    """A client certificate and its key, reloaded when the files change."""

    def __init__(self, certificate: Path, key: Path, authority: Path | None = None) -> None:
        """Read the certificate and key files.

        `authority` is the certificate of this server's own front-proxy authority. Raises `SettingsError`.
        """
        self.files = certificate, key
        """The paths of the certificate and the key."""
        self._followed = FollowedFiles(
            "front-proxy certificate", self.files, lambda status: FILE_RELOADS.labels(_SETTING, status).inc()
        )
        self.authority_file = authority
        """The path of the certificate of this server's own front-proxy authority; None if an administrator provides the
        client certificate.
        """
        self.authority = authority.read_text(encoding="ascii") if authority is not None else ""
        """The certificate of the front-proxy authority as PEM; empty if an administrator provides the client
        certificate.
        """
        self.pem = self._read()
        """The certificate and its key in one PEM string."""

    def reload(self) -> bool:
        """Reload the certificate and key files if they have changed; return whether they were reloaded."""
        return self._followed.reload(self._take)

    def _take(self) -> bool:
        self.pem = self._read()
        return True

    def _read(self) -> bytes:
        try:
            return b"\n".join(each.read_bytes() for each in self.files)
        except OSError as error:
            raise SettingsError(f"{_SETTING}: {error.filename} cannot be read: {error.strerror}") from error


def own_front_proxy(directory: Path, *, clock: Clock) -> tuple[Path, Path, Path]:
    """Return the paths of a certificate, its key and its authority in `directory`; create missing files.

    Raises `SettingsError` if the directory cannot be used.
    """
    files = CertificateFiles(directory)
    certificate, key = directory / "client.crt", directory / "client.key"
    now = datetime.fromtimestamp(clock.now() / 1_000_000, UTC)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        ensure_authority(files, now, _AUTHORITY)
        if not key.exists() or not _lasts(certificate, now):
            issued, secret = issue_client_certificate(files, NAME, (), clock=clock)
            write_private(key, secret)
            write_private(certificate, issued)
    except (OSError, ValueError) as error:
        raise SettingsError(f"data_dir: the certificates in {directory} cannot be used: {error}") from error
    return certificate, key, files.authority


def _lasts(certificate: Path, now: datetime) -> bool:
    if not certificate.exists():
        return False
    return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc - _RENEW_BEFORE > now
