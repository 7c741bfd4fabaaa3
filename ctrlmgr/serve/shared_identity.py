"""What the processes of one control plane share, so that who knows one of them knows all: `server.identity_dir`.

In it are the authority (`ca.crt`, `ca.key`), the key that signs service accounts' tokens (`sa.key`) and the
administrator's token (`admin.token`). The directory is on a file system that all have, or copied to each machine.

Guarantees: of processes that start at the same time on one directory, one makes what is missing and the others use it;
what is there is never written again; a token that other users can read is refused.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from ctrlmgr.errors import SettingsError
from ctrlmgr.server.http.tls import write_private
from ctrlmgr.server.kubeconfig import new_token

_TOKEN = "admin.token"


@contextmanager
def making(directory: Path | None) -> Iterator[None]:
    """Let no other process make anything in a directory meanwhile; raises `SettingsError` if it cannot be written.

    A copy that is complete need not be writable.
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
    """Whether nothing has to be made in it."""
    return all((directory / name).exists() for name in ("ca.crt", "ca.key", "sa.key", _TOKEN))


def shared_token(directory: Path, random: Random) -> str:
    """Return the administrator's token, a new one drawn from `random` if there is none; raises `SettingsError`."""
    file = directory / _TOKEN
    try:
        if not file.exists():
            write_private(file, f"{new_token(random)}\n".encode())
        mode, token = file.stat().st_mode, file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise SettingsError(f"server.identity_dir: {file} cannot be used: {error}") from error
    if mode & 0o077:
        raise SettingsError(f"server.identity_dir: others may read {file}, which holds a token; chmod 600 it")
    if not token or len(token.split()) != 1:
        raise SettingsError(f"server.identity_dir: {file} holds no token; delete it for a new one")
    return token
