"""Encrypts and decrypts data keys with the keys of an EncryptionConfiguration.

Guarantees: the encrypted values have kube-apiserver's format. The prefix of an encrypted value names the provider and
the key, such as `k8s:enc:aescbc:v1:key1:`.

Source: apiserver `pkg/storage/value/encrypt/aes/aes.go`, `encrypt/secretbox/secretbox.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

from ctrlmgr.errors import SettingsError

RandomBytes = Callable[[int], bytes]
"""A function that returns the given number of bytes from a cryptographically secure random source."""

_BLOCK: Final = 16
_NONCE: Final = 12


class KeyRefused(Exception):
    """Raised if a key cannot decrypt a value: another key encrypted the value, or the value was changed."""


class KeyCipher(Protocol):
    """Encrypts data keys with one key of a provider."""

    prefix: str
    """The prefix of the values that this cipher encrypts; values with this prefix are decrypted with this cipher."""
    provider: str = ""
    """The name of the KMS that this cipher calls; empty if this cipher calls none."""

    def encrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the encrypted value; the decryption needs the same `context`."""

    def decrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the decrypted value; raises `KeyRefused` if this key cannot decrypt the value."""

    def is_current(self, value: bytes) -> bool:
        """Return whether a new value would be encrypted with the same key as `value`."""
        return True

    def key_id(self, value: bytes) -> str:
        """Return the id of the KMS's key that encrypted a value; empty if no KMS encrypted the value."""
        return ""

    def require_usable(self) -> None:
        """Raise `LogError` if no object may be encrypted at the moment."""
        return


class Identity(KeyCipher):
    """The provider `identity`, which does not encrypt."""

    prefix = "k8s:enc:identity:"

    def encrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the value unchanged."""
        return value

    def decrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the value unchanged."""
        return value


class AesCbc(KeyCipher):
    """Encrypts with AES in CBC mode, with a random initialization vector and PKCS #7 padding.

    CBC does not detect changes of a value; the hash chain and the encryption of payloads (GCM) do.
    """

    def __init__(self, name: str, key: bytes, random: RandomBytes) -> None:
        """Create a cipher with a key of 16, 24 or 32 bytes."""
        self.prefix = f"k8s:enc:aescbc:v1:{name}:"
        self._key = algorithms.AES(key)
        self._random = random

    def encrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the initialization vector and the encrypted value."""
        vector = self._random(_BLOCK)
        padding = PKCS7(_BLOCK * 8).padder()
        cipher = Cipher(self._key, modes.CBC(vector)).encryptor()
        return vector + cipher.update(padding.update(value) + padding.finalize()) + cipher.finalize()

    def decrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the decrypted value."""
        if len(value) < 2 * _BLOCK or len(value) % _BLOCK:
            raise KeyRefused
        cipher = Cipher(self._key, modes.CBC(value[:_BLOCK])).decryptor()
        padding = PKCS7(_BLOCK * 8).unpadder()
        try:
            return padding.update(cipher.update(value[_BLOCK:]) + cipher.finalize()) + padding.finalize()
        except ValueError as error:
            raise KeyRefused from error


class AesGcm(KeyCipher):
    """Encrypts with AES in Galois/Counter mode, which detects changes of the value and of its context."""

    def __init__(self, name: str, key: bytes, random: RandomBytes) -> None:
        """Create a cipher with a key of 16, 24 or 32 bytes."""
        self.prefix = f"k8s:enc:aesgcm:v1:{name}:"
        self._aead = AESGCM(key)
        self._random = random

    def encrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the nonce, the encrypted value and its tag."""
        nonce = self._random(_NONCE)
        return nonce + self._aead.encrypt(nonce, value, context)

    def decrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the decrypted value."""
        try:
            return self._aead.decrypt(value[:_NONCE], value[_NONCE:], context)
        except (InvalidTag, ValueError) as error:
            raise KeyRefused from error


class Secretbox(KeyCipher):
    """Encrypts with XSalsa20 and Poly1305, as NaCl's secretbox does; the package PyNaCl is needed."""

    def __init__(self, name: str, key: bytes, random: RandomBytes) -> None:
        """Create a cipher with a key of 32 bytes; raises `SettingsError` if PyNaCl is not installed."""
        try:
            from nacl.secret import SecretBox
        except ImportError as error:
            raise SettingsError(
                "the provider secretbox needs the package PyNaCl: pip install 'ctrlmgr[encryption]'"
            ) from error
        self.prefix = f"k8s:enc:secretbox:v1:{name}:"
        self._box = SecretBox(key)
        self._random = random

    def encrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the nonce (24 bytes), the tag and the encrypted value."""
        return bytes(self._box.encrypt(value, self._random(self._box.NONCE_SIZE)))

    def decrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the decrypted value."""
        from nacl.exceptions import CryptoError

        try:
            return bytes(self._box.decrypt(value))
        except (CryptoError, ValueError) as error:
            raise KeyRefused from error
