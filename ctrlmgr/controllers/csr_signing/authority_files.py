"""The files of a signer's authority, followed as they change.

Guarantees: a pair that was replaced on disk signs from the next certificate on; one that cannot be used is reported
and the last good one goes on signing.

Rules: `pkg/controller/certificates/signer/ca_provider.go`.
"""

from __future__ import annotations

from pathlib import Path

import structlog

from ctrlmgr.authentication.file_stamps import Stamp, stamp_of
from ctrlmgr.controllers.csr_signing.authority import SigningAuthority
from ctrlmgr.errors import SettingsError
from ctrlmgr.metrics import FILE_RELOADS

log = structlog.get_logger(__name__)

_SETTING = "controllers.cluster_signing_cert_file"


class AuthorityFiles:
    """A certificate and its key, as PEM files; used on one thread at a time."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read both; raises `SettingsError` when they cannot be used."""
        self._files = certificate, key
        self._stamps = self._look()
        try:
            self._authority = self._read()
        except (OSError, ValueError) as error:
            raise SettingsError(f"{certificate} and {key} cannot sign: {error}") from error

    def current(self) -> SigningAuthority:
        """Return the authority as the files have it."""
        stamps = self._look()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._authority = self._read()
                FILE_RELOADS.labels(_SETTING, "success").inc()
                log.info("signing authority reloaded", certificate=str(self._files[0]))
            except (OSError, ValueError) as error:
                FILE_RELOADS.labels(_SETTING, "failure").inc()
                log.warning("signing authority not reloaded, the old one stays in use", error=str(error))
        return self._authority

    def _read(self) -> SigningAuthority:
        certificate, key = self._files
        return SigningAuthority.read(certificate.read_bytes(), key.read_bytes())

    def _look(self) -> list[Stamp]:
        return [stamp_of(path) for path in self._files]
