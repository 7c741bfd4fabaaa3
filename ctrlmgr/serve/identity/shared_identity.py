"""Creates the files that all processes of one control plane share (`server.identity_dir`).

The shared files are the authority (`ca.crt`, `ca.key`), the key that signs service accounts' tokens (`sa.key`) and the
administrator's token (`admin.token`). The shared directory is on a shared file system, or copied to each machine.

Guarantees: if several processes start at the same time, one process creates the missing files and the others use these
files. No process overwrites an existing file. A process refuses a token file that other users can read.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from ctrlmgr.errors import SettingsError
from ctrlmgr.http.tls import write_private
from ctrlmgr.server.admin_kubeconfig import new_token

_TOKEN = "admin.token"


@contextmanager
def making(directory: Path | None) -> Iterator[None]:
    """Lock a directory while the block creates files in it; raises `SettingsError` if the directory is not writable.

    A copy of the directory that contains all files need not be writable.
    """
    lock = _locked(directory) if directory else None
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _locked(directory: Path) -> int | None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if is_complete(directory):
            return None
        raise SettingsError(f"server.identity_dir: {directory} cannot be written: {error.strerror}") from error
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def is_complete(directory: Path) -> bool:
    """Return whether all shared files exist."""
    return all((directory / name).exists() for name in ("ca.crt", "ca.key", "sa.key", _TOKEN))


def shared_token(directory: Path, random: Random) -> str:
    """Return the administrator's token; if none exists, create a token with `random`. Raises `SettingsError`."""
    file = directory / _TOKEN
    try:
        if not file.exists():
            write_private(file, f"{new_token(random)}\n".encode())
        mode, token = file.stat().st_mode, file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise SettingsError(f"server.identity_dir: {file} cannot be used: {error}") from error
    if mode & 0o077:
        raise SettingsError(f"server.identity_dir: other users can read {file}, which contains a token; chmod 600 it")
    if not token or len(token.split()) != 1:
        raise SettingsError(f"server.identity_dir: {file} contains no token; delete it for a new one")
    return token
