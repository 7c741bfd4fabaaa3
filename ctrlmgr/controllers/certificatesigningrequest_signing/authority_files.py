"""The certificate and key files of a signer, reloaded when they change.

Guarantees: after both files have been replaced, the next certificate is signed with the new pair. If the new pair is
unusable, the failure is logged, and certificates are signed with the last valid pair.

Source: `pkg/controller/certificates/signer/ca_provider.go`.
"""

from __future__ import annotations

from pathlib import Path

from ctrlmgr.authentication.followed_files import FollowedFiles
from ctrlmgr.controllers.certificatesigningrequest_signing.authority import SigningAuthority
from ctrlmgr.errors import SettingsError
from ctrlmgr.metrics import FILE_RELOADS

_SETTING = "controllers.cluster_signing_cert_file"


class AuthorityFiles:
    """A certificate and its key, read from PEM files; only one thread at a time may use an instance."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read both files; raises `SettingsError` if the files are unusable."""
        self._files = certificate, key
        self._followed = FollowedFiles(
            "signing authorities", self._files, lambda status: FILE_RELOADS.labels(_SETTING, status).inc()
        )
        self._authority = self._read()

    def current(self) -> SigningAuthority:
        """Return the certificate authority with the current content of the files."""
        self._followed.reload(self._take)
        return self._authority

    def _take(self) -> bool:
        self._authority = self._read()
        return True

    def _read(self) -> SigningAuthority:
        certificate, key = self._files
        try:
            return SigningAuthority.read(certificate.read_bytes(), key.read_bytes())
        except (OSError, ValueError) as error:
            raise SettingsError(f"{certificate} and {key} cannot sign: {error}") from error
