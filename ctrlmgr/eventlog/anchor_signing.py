"""Signs anchors, and ships them: sends copies to a place where the log's host cannot change the copies.

Guarantees:
- A seal is an Ed25519 key in a file that only the file's owner can read. The first process that needs the key creates
  it.
- Shipping never delays an append. A separate thread runs a command with the newest anchor, at most once in a given
  interval, and logs a warning if the command fails. The newest anchor is also shipped when the log closes.

`docs/security.md` says which attacks signed anchors and their copies detect.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import structlog
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ctrlmgr import threads
from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError

log = structlog.get_logger(__name__)

_PATIENCE = 30.0
"""The maximum duration of one run of the command, in seconds."""

_RAW = serialization.Encoding.Raw, serialization.PublicFormat.Raw


class Sealing(NamedTuple):
    """The settings for signing and shipping anchors."""

    key: Path
    """The file that contains the private key."""
    makes_key: bool = False
    """Whether a missing key is created. If False, a process without a key does not sign anchors."""
    command: str = ""
    """The command that ships an anchor, which the command reads from its stdin; empty if anchors are not shipped."""
    every: float = 60.0
    """The minimum number of seconds between runs of the command."""


class Seal:
    """A seal: a key that signs anchors."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        """Create a seal that signs with `key`."""
        self._key = key
        self.public = key.public_key().public_bytes(*_RAW).hex()
        """The public key of the seal, in hexadecimal."""

    def sign(self, data: bytes) -> str:
        """Return the signature of data, in hexadecimal."""
        return self._key.sign(data).hex()


def load_seal(sealing: Sealing) -> Seal | None:
    """Return the seal; None if the key is missing and `makes_key` is not set.

    If `makes_key` is set, a missing key is created. Raises `SettingsError` if the file of the key cannot be used.
    """
    try:
        if sealing.makes_key and not sealing.key.exists():
            _make(sealing.key)
        key = serialization.load_pem_private_key(sealing.key.read_bytes(), password=None)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SettingsError(f"database.anchor_key: {sealing.key} cannot be used: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SettingsError(f"database.anchor_key: {sealing.key} is not an Ed25519 key")
    return Seal(key)


def read_public_key(path: Path) -> str:
    """Return the public key (hexadecimal) in a file with a public or private key.

    Raises `SettingsError` if the file contains no key.
    """
    try:
        data = path.read_bytes()
        if b"PRIVATE KEY" in data:
            private = serialization.load_pem_private_key(data, password=None)
            key = private.public_key() if isinstance(private, Ed25519PrivateKey) else None
        else:
            public = serialization.load_pem_public_key(data)
            key = public if isinstance(public, Ed25519PublicKey) else None
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SettingsError(f"database.anchor_key: {path} cannot be used: {error}") from error
    if key is None:
        raise SettingsError(f"database.anchor_key: {path} is not an Ed25519 key")
    return key.public_bytes(*_RAW).hex()


def is_signed(data: bytes, signature: str, public: str) -> bool:
    """Return whether `signature` is the key's valid signature of the data.

    `signature` and `public` are hexadecimal; if one of them is malformed, the function returns False.
    """
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), data)
    except (ValueError, InvalidSignature):
        return False
    return True


def fingerprint(public: str) -> str:
    """Return a public key's short fingerprint, in hexadecimal."""
    return sha256(bytes.fromhex(public)).hexdigest()[:16]


def _make(path: Path) -> None:
    """Create the key file atomically; if another process creates the file first, keep that file."""
    key = Ed25519PrivateKey.generate()
    data = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()


class Shipper:
    """Runs, on its own thread, the command that ships anchors."""

    def __init__(self, sealing: Sealing, clock: Clock) -> None:
        """Start the thread; raises `SettingsError` if the command cannot be parsed."""
        try:
            self._command = shlex.split(sealing.command)
        except ValueError as error:
            raise SettingsError(f"database.anchor_command: {error}") from error
        self._every = sealing.every
        self._clock = clock
        self._changed = threading.Condition()
        self._newest = b""
        self._is_closing = False
        self._thread = threads.start("anchor shipper", self._run)

    def ship(self, anchor: bytes) -> None:
        """Ship an anchor soon, unless a newer anchor is passed to this method before."""
        with self._changed:
            self._newest = anchor
            self._changed.notify()

    def close(self) -> None:
        """Ship the last anchor if it was not shipped yet, and stop the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        while anchor := self._next():
            self._hand_over(anchor)
            with self._changed:
                until = self._clock.monotonic() + self._every
                while not self._is_closing and (left := until - self._clock.monotonic()) > 0:
                    self._clock.wait(self._changed, left)

    def _next(self) -> bytes:
        """Wait until there is an anchor to ship, and return it; return empty bytes if the thread must stop."""
        with self._changed:
            while not (self._newest or self._is_closing):
                self._clock.wait(self._changed, None)
            newest, self._newest = self._newest, b""
            return newest

    def _hand_over(self, anchor: bytes) -> None:
        try:
            done = subprocess.run(self._command, input=anchor, capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("anchor shipping failed", command=self._command[0], error=str(error))
            return
        if done.returncode:
            output = done.stderr[-500:].decode("utf-8", "replace").strip()
            log.warning("anchor shipping failed", command=self._command[0], exit=done.returncode, error=output)
