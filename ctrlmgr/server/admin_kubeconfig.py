"""Writes the administrator's kubeconfig, with which kubectl and client libraries connect to `serve`.

Guarantees: the kubeconfig has mode 0600 and is written atomically. The token in the kubeconfig stays the same after a
restart, so existing clients continue to work. If several processes use the same directory, only one process at a time
can claim the kubeconfig.
"""

from __future__ import annotations

import base64
import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import yaml

from ctrlmgr.errors import SettingsError
from ctrlmgr.http.tls import write_private
from ctrlmgr.settings.kubeconfig import EXTENSION

_NAME = "ctrlmgr"
_TOKEN_BITS = 256


def admin_token(path: Path, random: Random) -> str:
    """Return the token in the kubeconfig at `path`; if the file does not exist, return a new token from `random`.

    Raises `SettingsError` if the file exists but is not a kubeconfig with a token, or if other users may read it.
    """
    try:
        mode, text = path.stat().st_mode, path.read_text()
    except FileNotFoundError:
        return new_token(random)
    except OSError as error:
        raise SettingsError(f"data_dir: {path} cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise SettingsError(
            f"data_dir: other users can read {path}, which contains a token; chmod 600 it, or delete it"
        )
    try:
        token = yaml.safe_load(text)["users"][0]["user"]["token"]
    except (yaml.YAMLError, LookupError, TypeError) as error:
        raise SettingsError(f"data_dir: {path} is not a kubeconfig with a token; delete it for a new one") from error
    return str(token)


def new_token(random: Random) -> str:
    """Return a new hexadecimal token.

    The token never starts with a dash, because a command line would parse it as an option.
    """
    return f"{random.getrandbits(_TOKEN_BITS):x}"


class Claim:
    """A lock on a kubeconfig, which this process holds until it exits."""

    def __init__(self, path: Path) -> None:
        """Claim the kubeconfig at `path` unless another running process holds it.

        Raises `SettingsError` if the file cannot be locked.
        """
        lock = path.with_name(f"{path.name}.lock")
        try:
            self._file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SettingsError(f"data_dir: {lock} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.is_held = True
            """Whether this process holds the claim on the kubeconfig."""
        except BlockingIOError:
            self.is_held = False

    def end(self) -> None:
        """Release the lock on the kubeconfig."""
        os.close(self._file)


def require_unclaimed(path: Path) -> None:
    """Raise `SettingsError` if another running process has claimed the kubeconfig at `path`."""
    if not path.with_name(f"{path.name}.lock").exists():
        return
    claim = Claim(path)
    claim.end()
    if not claim.is_held:
        raise SettingsError(
            f"data_dir: {path.parent} is served by another process{_place(path)}; --join serves it from this one, too"
        )


def _place(path: Path) -> str:
    """Return a phrase with the server's address in a kubeconfig; error messages end with this phrase."""
    try:
        return f", on {yaml.safe_load(path.read_text())['clusters'][0]['cluster']['server']}"
    except (OSError, yaml.YAMLError, LookupError, TypeError):
        return ""


def write_kubeconfig(
    path: Path,
    *,
    server: str,
    authority: bytes,
    token: str,
    noted: Mapping[str, str] | None = None,
    server_name: str = "",
) -> None:
    """Write a kubeconfig for `server` (URL), its certificate authority (PEM) and a bearer token.

    `server_name` is the name in the server's certificate; empty if it is the host in the URL. The values in `noted` are
    stored in an extension of the kubeconfig's cluster entry. Commands read these values to find the log. Raises
    `SettingsError` if the file cannot be written.
    """
    cluster: dict[str, Any] = {
        "server": server,
        "certificate-authority-data": base64.b64encode(authority).decode(),
    }
    if server_name:
        cluster["tls-server-name"] = server_name
    if noted is not None:
        cluster["extensions"] = [{"name": EXTENSION, "extension": dict(noted)}]
    try:
        write_private(path, yaml.safe_dump(_kubeconfig(cluster, token), sort_keys=False).encode())
    except OSError as error:
        raise SettingsError(f"data_dir: {path} cannot be written: {error.strerror}") from error


def _kubeconfig(cluster: dict[str, Any], token: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": "admin"}}],
        "current-context": _NAME,
    }
