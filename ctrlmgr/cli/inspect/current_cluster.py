"""Chooses the log that a command reads: by default that of kubectl's current cluster, if it is a ctrlmgr server.

The following rules are tried in order; the first rule that applies selects the cluster:
1. `--server`, `--kubeconfig` or `--context` name a server; `--database` or `--data-dir` names a database.
2. A variable of ctrlmgr or the settings file names a database or data directory.
3. The variable `$KUBECONFIG` names the cluster. If the cluster in `$KUBECONFIG` is not a ctrlmgr server, the command
   prints a note, and rule 4 applies.
4. `~/.kube/config` names the cluster, if `ctrlmgr serve` wrote the cluster's entry. If no other rule applies, the
   database in the default data directory is used.

Guarantees: a server's log is read from its file under two conditions: the kubeconfig names the file, and it contains
the same token as the administrator's kubeconfig in the directory of the file. Therefore a server's log can be read even
while the server is stopped.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctrlmgr.errors import ServiceUnavailable, SettingsError
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.settings.kubeconfig import Access

VARIABLE = "KUBECONFIG"
_OURS = "+ctrlmgr."
_KUBECONFIG = "kubeconfig"


def access_named(kubeconfig: Path | None, context: str) -> Access:
    """Return the URL and the credentials of a context, in a given kubeconfig or in kubectl's.

    Raises `SettingsError` if the kubeconfig is missing or unusable.
    """
    from ctrlmgr.settings.kubeconfig import default_files, load

    files = [kubeconfig] if kubeconfig else default_files(os.environ, Path.home())
    if not any(file.exists() for file in files):
        raise SettingsError(f"there is no kubeconfig at {':'.join(map(str, files))}; choose another with --kubeconfig")
    return load(files, context)


def access_implied(loaded: Loaded) -> Access | None:
    """Return the URL and the credentials of kubectl's current cluster; None if the settings name a database.

    The result is also None if the rules in the module's docstring choose a database. Raises `SettingsError` if the
    kubeconfig cannot be used, and `ServiceUnavailable` if the server does not answer.
    """
    from ctrlmgr.settings.kubeconfig import default_files, is_marked, load

    if not (loaded.is_default("database.url") and loaded.is_default("data_dir")):
        return None
    files = default_files(os.environ, Path.home())
    if not os.environ.get(VARIABLE):
        return load(files) if is_marked(files) else None
    access = _of_variable(files)
    if access.extension is not None or _is_ours(access):
        return access
    note = f"the cluster of ${VARIABLE} ({access.server}) is not a ctrlmgr server"
    click.echo(f"note: {note}; using the data directory {loaded.settings.data_path}", err=True)
    return None


def _of_variable(files: list[Path]) -> Access:
    from ctrlmgr.settings.kubeconfig import load

    try:
        return load(files)
    except SettingsError as error:
        raise SettingsError(f"${VARIABLE}: {error}; --database or --data-dir names a database") from error


def _is_ours(access: Access) -> bool:
    """Request the version of the server, and return whether it is a ctrlmgr server."""
    import msgspec

    from ctrlmgr.recording.capture.cluster_client import Cluster

    try:
        answer = msgspec.json.decode(Cluster(access, program="ctrlmgr").request("GET", "/version", {}))
        return _OURS in answer["gitVersion"]
    except ServiceUnavailable as error:
        raise ServiceUnavailable(f"${VARIABLE}: {error}; --database or --data-dir names a database") from error
    except (msgspec.MsgspecError, LookupError, TypeError):
        return False


def local_implied(loaded: Loaded) -> Loaded:
    """Return settings that name the log of kubectl's current cluster, if that log is a file.

    The function sends no request to a server.
    """
    from ctrlmgr.settings.kubeconfig import default_files, is_marked, load

    files = default_files(os.environ, Path.home())
    if not (loaded.is_default("database.url") and loaded.is_default("data_dir")) or not is_marked(files):
        return loaded
    return local(loaded, load(files)) or loaded


def local(loaded: Loaded, access: Access) -> Loaded | None:
    """Return settings that name the file of the server's log; None if the log can be read only through the server."""
    from ctrlmgr.settings.kubeconfig import load

    noted = access.extension or {}
    url, folder = str(noted.get("database") or ""), Path(str(noted.get("data-dir") or "/nonexistent"))
    if not url.startswith("sqlite:////") or not Path(url.removeprefix("sqlite:///")).exists():
        return None
    try:
        if not access.user.get("token") or load([folder / _KUBECONFIG]).user.get("token") != access.user["token"]:
            return None
    except SettingsError:  # the file does not exist, or this user may not read it
        return None
    settings = loaded.settings
    database = replace(settings.database, url=url, anchor="", anchor_key="")
    return loaded._replace(settings=replace(settings, database=database, data_dir=str(folder)))
