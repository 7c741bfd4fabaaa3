"""Stores clusters as directories: `DIR/NAME` contains the log, the keys and the kubeconfig of the cluster NAME.

Guarantees:
- `create` and `delete` are atomic. A cluster exists exactly if its directory has its name, and a rename gives and
  removes the name. If the process is killed at any moment, the next start removes what is left of the other names.
- If the name of a deleted cluster is used again, the new cluster is empty.
- One process at a time holds a directory of clusters.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from ctrlmgr.errors import AlreadyExists, BadRequest, NotFound, SettingsError

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Matches an RFC 1123 label, as the name of a namespace."""
_HIDDEN: Final = "."
"""The first character of directories that are not clusters: unfinished, deleted, or the lock."""
_LOCK: Final = ".lock"


def is_name(text: str) -> bool:
    """Return whether a text is a valid name of a cluster."""
    return _NAME.fullmatch(text) is not None


class ClusterDirectory:
    """The directories of all clusters of a process. The methods may be called on any thread."""

    def __init__(self, root: Path, random: Random) -> None:
        """Use `root`, which is created if it does not exist; remove what earlier processes left unfinished.

        Raises `SettingsError` if the directory cannot be used, or if another running process holds it.
        """
        self._root = root
        self._random = random
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SettingsError(f"clusters.directory: {root} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise SettingsError(f"clusters.directory: another process serves the clusters in {root}") from error
        for each in root.iterdir():
            if each.name.startswith(_HIDDEN) and each.is_dir():
                shutil.rmtree(each)

    def close(self) -> None:
        """Let another process use the directory."""
        os.close(self._lock)

    def names(self) -> list[str]:
        """Return the names of all clusters, sorted."""
        return sorted(each.name for each in self._root.iterdir() if is_name(each.name))

    def path(self, name: str) -> Path:
        """Return the directory of a cluster; raises `NotFound` if the cluster does not exist."""
        path = self._root / name
        if not (is_name(name) and path.is_dir()):
            raise NotFound(f'clusters "{name}" not found')
        return path

    def create(self, name: str, fill: Callable[[Path], None]) -> Path:
        """Create a cluster whose directory `fill` has filled, and return the directory.

        Raises `BadRequest` for an invalid name, `AlreadyExists`, and the errors of `fill`; no cluster exists then.
        """
        if not is_name(name):
            raise BadRequest(f"the name {name!r} is invalid: it must be a DNS label, such as test-1")
        if (self._root / name).exists():
            raise _exists(name)
        with self._temporary("new") as unfinished:
            fill(unfinished)
            _sync(unfinished)
            try:
                unfinished.rename(self._root / name)
            except OSError as error:  # another thread has created the cluster, so its directory is not empty
                raise _exists(name) from error
        _sync(self._root)
        return self._root / name

    def delete(self, name: str) -> None:
        """Delete a cluster; raises `NotFound` if the cluster does not exist."""
        path = self.path(name)
        gone = self._hidden("deleted")
        try:
            path.rename(gone)
        except FileNotFoundError as error:
            raise NotFound(f'clusters "{name}" not found') from error
        _sync(self._root)
        shutil.rmtree(gone, ignore_errors=True)  # the next start removes the rest

    @contextmanager
    def _temporary(self, purpose: str) -> Iterator[Path]:
        path = self._hidden(purpose)
        path.mkdir(mode=0o700)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)  # nothing is left if the directory was renamed

    def _hidden(self, purpose: str) -> Path:
        return self._root / f"{_HIDDEN}{purpose}-{self._random.getrandbits(64):016x}"


def _exists(name: str) -> AlreadyExists:
    return AlreadyExists(f'clusters "{name}" already exists')


def _sync(directory: Path) -> None:
    """Wait until the entries of a directory are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
