"""Chooses the ciphers of each resource by an EncryptionConfiguration.

Guarantees: the first cipher of a resource encrypts; each of its ciphers decrypts the values with its prefix. An exact
resource has precedence over `*.GROUP`, which has precedence over `*.*`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from ctrlmgr.api.resource import INTERNAL_GROUP, Resource
from ctrlmgr.encryption.encryption_configuration import EVERY, Kms, NamedKey, read_configuration
from ctrlmgr.encryption.key_ciphers import AesCbc, AesGcm, Identity, KeyCipher, RandomBytes, Secretbox
from ctrlmgr.errors import SettingsError

_NewCipher = Callable[[str, bytes, RandomBytes], KeyCipher]
_CIPHERS: Final[Mapping[str, _NewCipher]] = {"aescbc": AesCbc, "aesgcm": AesGcm, "secretbox": Secretbox}


class KeyProviders:
    """The ciphers of an EncryptionConfiguration, by resource."""

    def __init__(self, ciphers: Mapping[Resource, Sequence[KeyCipher]], content_hash: str = "") -> None:
        """Use the ciphers of each resource; a `*` stands for all resources or groups."""
        self._ciphers = ciphers
        self.content_hash = content_hash
        """The hash of the file that the ciphers were read from, as `content_hash` returns it."""

    def of(self, resource: Resource) -> Sequence[KeyCipher]:
        """Return the ciphers of a resource; the first one encrypts. Empty if no rule names the resource."""
        if resource.group == INTERNAL_GROUP:
            return ()
        for rule in (resource, Resource(resource.group, "*"), EVERY):
            if rule in self._ciphers:
                return self._ciphers[rule]
        return ()

    def of_texts(self) -> Sequence[KeyCipher]:
        """Return the ciphers for error texts, which may quote any object: those of the first rule that encrypts."""
        return next((each for each in self._ciphers.values() if not isinstance(each[0], Identity)), ())

    def encrypts(self, resource: Resource) -> bool:
        """Return whether new objects of a resource are encrypted."""
        ciphers = self.of(resource)
        return bool(ciphers) and not isinstance(ciphers[0], Identity)

    def named(self) -> list[Resource]:
        """Return the resources that the configuration names without a `*`."""
        return [each for each in self._ciphers if each.plural != "*"]


def read_providers(file: Path, random: RandomBytes = secrets.token_bytes) -> KeyProviders:
    """Read an EncryptionConfiguration; raises `SettingsError` if the file is invalid."""
    hashed = content_hash(file)  # before the file is read, so that a change meanwhile is found later
    made: dict[NamedKey | str, KeyCipher] = {}
    ciphers: dict[Resource, list[KeyCipher]] = {}
    for resource, keys in read_configuration(file).items():
        ciphers[resource] = [_cipher(key, made, random) for key in keys]
    return KeyProviders(ciphers, hashed)


def content_hash(file: Path) -> str:
    """Return the hash of a file as kube-apiserver's metrics show it; raises `SettingsError` if it cannot be read."""
    try:
        return f"sha256:{sha256(file.read_bytes()).hexdigest()}"
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from error


def _cipher(key: NamedKey | Kms, made: dict[NamedKey | str, KeyCipher], random: RandomBytes) -> KeyCipher:
    named = key.name if isinstance(key, Kms) else key
    if named not in made:
        made[named] = _new_cipher(key, random)
    return made[named]


def _new_cipher(key: NamedKey | Kms, random: RandomBytes) -> KeyCipher:
    if isinstance(key, Kms):
        raise SettingsError(
            f"the KMS provider {key.name} cannot be used: ctrlmgr supports aescbc, aesgcm, secretbox and identity"
        )
    if key.provider == "identity":
        return Identity()
    return _CIPHERS[key.provider](key.name, key.secret, random)
