"""Reads the keys of service accounts' tokens from the files that the settings name.

Guarantees: if no setting names a key, the server generates and stores a key at its first start. If the server cannot
use a key file, the start fails with an error that names the file and the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from ctrlmgr.authentication.jwt import PrivateKey
from ctrlmgr.authentication.token_keys import VerificationKeys, read_private_key, read_public_keys
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.tls import write_private

_BITS = 2048
_EXPONENT = 65537


class AccountKeys(NamedTuple):
    """The keys that sign tokens, and the keys that verify tokens."""

    signing: PrivateKey
    """The key that signs tokens of TokenRequests."""
    kept: PrivateKey
    """The key that signs the tokens in Secrets."""
    verifying: VerificationKeys


def read_account_keys(own: Path, signing: str, kept: str, verifying: Sequence[str]) -> AccountKeys:
    """Read the keys from the files that three settings name; raises `SettingsError` if a file cannot be used.

    If only one of `signing` and `kept` is empty, the server uses the key in the other file for both purposes. If both
    are empty, the server uses the key in the file `own`, which it creates if necessary. The server also verifies tokens
    with all signing keys.
    """
    first = _private("signing_key_file", signing or kept) if signing or kept else _own(own)
    second = _private("private_key_file", kept) if kept and signing else first
    public = [first.public_key(), second.public_key()]
    for name in verifying:
        try:
            public += read_public_keys(Path(name).expanduser().read_bytes())
        except (OSError, ValueError) as error:
            raise SettingsError(f"service_accounts.key_file: {name} cannot be used: {_why(error)}") from error
    return AccountKeys(first, second, VerificationKeys(public))


def _private(setting: str, name: str) -> PrivateKey:
    try:
        return read_private_key(Path(name).expanduser().read_bytes())
    except (OSError, ValueError) as error:
        raise SettingsError(f"service_accounts.{setting}: {name} cannot be used: {_why(error)}") from error


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _own(path: Path) -> PrivateKey:
    try:
        if path.exists():
            return read_private_key(path.read_bytes())
        key = rsa.generate_private_key(_EXPONENT, _BITS)
        pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        write_private(path, key.private_bytes(*pem))
    except (OSError, ValueError) as error:
        raise SettingsError(f"data_dir: {path} cannot be used: {error}") from error
    return key
