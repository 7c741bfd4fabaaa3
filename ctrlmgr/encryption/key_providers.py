"""Chooses the ciphers of each resource by an EncryptionConfiguration.

Guarantees: the first cipher of a resource encrypts new values; each cipher decrypts the values with the cipher's
prefix. A rule for a named resource has precedence over `*.GROUP`; `*.GROUP` has precedence over `*.*`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from ctrlmgr.api.resource import INTERNAL_GROUP, Resource
from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.encryption.encryption_configuration import EVERY, Kms, NamedKey, read_configuration
from ctrlmgr.encryption.key_ciphers import AesCbc, AesGcm, Identity, KeyCipher, RandomBytes, Secretbox
from ctrlmgr.encryption.kms.kms_cipher import KmsCipher
from ctrlmgr.encryption.kms.kms_client import KmsClient
from ctrlmgr.errors import SettingsError

_NewCipher = Callable[[str, bytes, RandomBytes], KeyCipher]
_CIPHERS: Final[Mapping[str, _NewCipher]] = {"aescbc": AesCbc, "aesgcm": AesGcm, "secretbox": Secretbox}


class KeyProviders:
    """The ciphers of an EncryptionConfiguration, by resource."""

    def __init__(self, ciphers: Mapping[Resource, Sequence[KeyCipher]], content_hash: str = "") -> None:
        """Use the given ciphers of each resource; a `*` in a resource means all resources or all groups."""
        self._ciphers = ciphers
        self.content_hash = content_hash
        """The hash of the file that the ciphers were read from, as `content_hash` returns it."""

    def of(self, resource: Resource) -> Sequence[KeyCipher]:
        """Return the ciphers of a resource, the encrypting cipher first; empty if no rule names the resource."""
        if resource.group == INTERNAL_GROUP:
            return ()
        for rule in (resource, Resource(resource.group, "*"), EVERY):
            if rule in self._ciphers:
                return self._ciphers[rule]
        return ()

    def of_texts(self) -> Sequence[KeyCipher]:
        """Return the ciphers for error texts, which may quote any object: the ciphers of the first encrypting rule."""
        return next((each for each in self._ciphers.values() if not isinstance(each[0], Identity)), ())

    def encrypts(self, resource: Resource) -> bool:
        """Return whether new objects of a resource are encrypted."""
        ciphers = self.of(resource)
        return bool(ciphers) and not isinstance(ciphers[0], Identity)

    def named(self) -> list[Resource]:
        """Return the resources that the configuration names without a `*`."""
        return [each for each in self._ciphers if each.plural != "*"]

    @property
    def services(self) -> Sequence[KmsCipher]:
        """The ciphers that call a KMS, without duplicates, in the order of the configuration."""
        found = {id(each): each for ciphers in self._ciphers.values() for each in ciphers}
        return [each for each in found.values() if isinstance(each, KmsCipher)]

    def close(self) -> None:
        """Close the connections to KMS plugins."""
        for each in self.services:
            each.close()


def read_providers(file: Path, random: RandomBytes = secrets.token_bytes, clock: Clock | None = None) -> KeyProviders:
    """Read an EncryptionConfiguration; raises `SettingsError` if the file is invalid.

    `clock` measures the time for which a KMS plugin is unhealthy.
    """
    hashed = content_hash(file)  # before the file is read, so that a change meanwhile is found later
    made: dict[NamedKey | str, KeyCipher] = {}
    ciphers: dict[Resource, list[KeyCipher]] = {}
    clock = clock or SystemClock()
    for resource, keys in read_configuration(file).items():
        ciphers[resource] = [_cipher(key, made, random, clock) for key in keys]
    return KeyProviders(ciphers, hashed)


def content_hash(file: Path) -> str:
    """Return the hash of a file that kube-apiserver's metrics show; raises `SettingsError` for an unreadable file."""
    try:
        return f"sha256:{sha256(file.read_bytes()).hexdigest()}"
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from error


def _cipher(key: NamedKey | Kms, made: dict[NamedKey | str, KeyCipher], random: RandomBytes, clock: Clock) -> KeyCipher:
    named = key.name if isinstance(key, Kms) else key
    if named not in made:
        made[named] = _new_service(key, clock, random) if isinstance(key, Kms) else _new_cipher(key, random)
    return made[named]


def _new_service(kms: Kms, clock: Clock, random: RandomBytes) -> KmsCipher:
    return KmsCipher(kms.name, KmsClient(kms, clock, random), clock)


def _new_cipher(key: NamedKey, random: RandomBytes) -> KeyCipher:
    if key.provider == "identity":
        return Identity()
    return _CIPHERS[key.provider](key.name, key.secret, random)
