"""Encryption at rest: reads Kubernetes' EncryptionConfiguration, and encrypts the data keys of a log.

`eventlog.encrypted.payload_codec` encrypts the objects with the data keys.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ctrlmgr.clock import Clock

if TYPE_CHECKING:  # the cryptography package is imported only if objects are encrypted
    from ctrlmgr.encryption.key_providers import KeyProviders


def providers_from(file: str, clock: Clock | None = None) -> KeyProviders | None:
    """Return the ciphers of an EncryptionConfiguration; None if `file` is empty.

    `clock` measures the time for which a KMS plugin is unhealthy. Raises `SettingsError` if the file is invalid.
    """
    if not file:
        return None
    from ctrlmgr.encryption.key_providers import read_providers

    return read_providers(Path(file).expanduser(), clock=clock)
