"""The files of authorities that vouch for clients, followed as they change.

Guarantees: who was vouched for by a certificate that is taken out of its file is a stranger from the next look on;
files that cannot be read any more are reported, and what they last said stays in force.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ctrlmgr.authentication.certificates import read_certificates
from ctrlmgr.authentication.file_stamps import Stamp, stamp_of
from ctrlmgr.errors import SettingsError
from ctrlmgr.metrics import FILE_RELOADS

log = structlog.get_logger(__name__)


class AuthorityFiles:
    """The certificates in some files; `reload` from one thread at a time."""

    def __init__(self, setting: str, files: Sequence[Path]) -> None:
        """Read `files`, which `setting` names; raises `SettingsError` when that cannot be done."""
        self._setting = setting
        self._files = files
        self._stamps = self._look()
        self.certificates: Sequence[x509.Certificate] = self._read()
        """All of them; another object when they have changed."""

    def reload(self) -> bool:
        """Take up the files if they have changed; return whether they were."""
        stamps = self._look()
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        try:
            self.certificates = self._read()
        except SettingsError as error:
            FILE_RELOADS.labels(self._setting, "failure").inc()
            log.warning("authorities not reloaded, the old ones stay in force", error=str(error))
            return False
        FILE_RELOADS.labels(self._setting, "success").inc()
        log.info("authorities reloaded", setting=self._setting, certificates=len(self.certificates))
        return True

    @property
    def pem(self) -> str:
        """All of them as PEM."""
        return b"".join(each.public_bytes(Encoding.PEM) for each in self.certificates).decode()

    def _read(self) -> tuple[x509.Certificate, ...]:
        found: list[x509.Certificate] = []
        for path in self._files:
            try:
                found += read_certificates(path.read_bytes())
            except OSError as error:
                raise SettingsError(f"{self._setting}: {path} cannot be read: {error.strerror}") from error
            except ValueError as error:
                raise SettingsError(f"{self._setting}: {path} cannot be used: {error}") from error
        return tuple(found)

    def _look(self) -> list[Stamp]:
        return [stamp_of(path) for path in self._files]
