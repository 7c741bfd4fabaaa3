"""Reads the files of certificate authorities for client certificates, and reloads changed files.

Guarantees: after a reload, the server refuses certificates of an authority that was removed. If a file becomes
unreadable, the server reports the error, and the previous authorities remain in force.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ctrlmgr.authentication.followed_files import FollowedFiles
from ctrlmgr.authentication.x509_verification import read_certificates
from ctrlmgr.errors import SettingsError
from ctrlmgr.metrics import FILE_RELOADS


class AuthorityFiles:
    """The certificates of the authorities in some files. Only one thread at a time may call `reload`."""

    def __init__(self, setting: str, files: Sequence[Path]) -> None:
        """Read `files`; `setting` is the name of the setting, which errors contain.

        Raises `SettingsError` if a file cannot be read.
        """
        self._setting = setting
        self._files = files
        self._followed = FollowedFiles("authorities", files, lambda status: FILE_RELOADS.labels(setting, status).inc())
        self.certificates: Sequence[x509.Certificate] = self._read()
        """All certificates of the authorities. A reload that finds changes replaces this object, so callers can compare
        it by identity.
        """

    def reload(self) -> bool:
        """Reload the certificate files if they have changed; return whether they were reloaded."""
        return self._followed.reload(self._take)

    @property
    def pem(self) -> str:
        """All certificates of the authorities as PEM."""
        return b"".join(each.public_bytes(Encoding.PEM) for each in self.certificates).decode()

    def _take(self) -> bool:
        self.certificates = self._read()
        return True

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
