"""`ctrlmgr wait`: waits until a server is ready, for use in scripts.

Guarantees: the exit code is 0 if the server became ready in time. If the server did not become ready in time, the exit
code is 1, and one line says what is missing. If the server has not written its files yet, or does not answer yet, the
command also waits.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from ctrlmgr.cli.options import Duration, takes_settings
from ctrlmgr.errors import ApiError, CtrlmgrError, ServiceUnavailable, SettingsError
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.clock import Clock
    from ctrlmgr.settings.kubeconfig import Access

_FILE = click.Path(dir_okay=False, path_type=Path)
_LOOK_AGAIN: Final = 0.1
_CONNECTING: Final = 5.0


@click.command(short_help="Wait until a server is ready.")
@takes_settings("data_dir", "server.ready_file")
@click.option(
    "--kubeconfig", type=_FILE, metavar="FILE", help=("The kubeconfig that names the server; by default kubectl's.")
)
@click.option(
    "--context", default="", metavar="NAME", help="The context of the kubeconfig; by default the current context."
)
@click.option(
    "--timeout",
    type=Duration(),
    default="60s",
    metavar="DURATION",
    show_default=True,
    help=("The maximum time to wait."),
)
def wait(loaded: Loaded, kubeconfig: Path | None, context: str, timeout: float) -> int:
    """Wait until a server is ready, and print its URL.

    The command waits for the server that other commands use: the server of the kubeconfig, or the server that uses the
    data directory. If --ready-file is given, the command waits for the server whose URL `serve --ready-file` has
    written into the file. The exit code is 0 if the server is ready in time, and 1 otherwise.

    \b
    ctrlmgr serve & ctrlmgr wait && kubectl apply -f shop.yaml
    ctrlmgr wait --timeout 30s --ready-file /run/ctrlmgr/ready
    """
    from ctrlmgr.clock import SystemClock

    file = loaded.settings.server.ready_file
    ask = (lambda: _of_file(Path(file))) if file else (lambda: _ready(server_access(loaded, kubeconfig, context)))
    url, problem = until_ready(ask, timeout, clock=SystemClock())
    if not url:
        click.echo(f"error: the server is not ready after {timeout:g} s: {problem}", err=True)
        return 1
    click.echo(f"ready: {url}")
    return 0


def until_ready(ask: Callable[[], str], timeout: float, *, clock: Clock) -> tuple[str, str]:
    """Call `ask` until it returns the URL of a ready server, for at most `timeout` seconds.

    Return the URL and the last error; the URL is empty if the server was not ready in time.
    """
    until = clock.monotonic() + timeout
    pause = threading.Condition()
    while True:
        try:
            return ask(), ""
        except CtrlmgrError as error:
            if clock.monotonic() >= until:
                return "", " ".join(str(error).split())
        with pause:
            clock.wait(pause, _LOOK_AGAIN)


def server_access(loaded: Loaded, kubeconfig: Path | None, context: str) -> Access:
    """Return the URL and the credentials of the server; raises `SettingsError` if the kubeconfig does not exist yet."""
    from ctrlmgr.cli.inspect.current_cluster import access_named
    from ctrlmgr.settings.kubeconfig import default_files, is_marked, load

    if kubeconfig or context:
        return access_named(kubeconfig, context)
    files = default_files(os.environ, Path.home())
    if loaded.is_default("data_dir") and (os.environ.get("KUBECONFIG") or is_marked(files)):
        return load(files)
    return load([loaded.settings.data_path / "kubeconfig"])


def _ready(access: Access) -> str:
    """Return the URL of a server whose `/readyz` succeeds; raises `ApiError` if the request to `/readyz` fails."""
    from ctrlmgr.recording.capture.cluster_client import Cluster

    try:
        Cluster(access, program="ctrlmgr-wait").request("GET", "/readyz", {})
    except ApiError as error:
        reasons = str(error).splitlines()
        failing = [line for line in reasons if line.startswith("[-]")]
        raise ServiceUnavailable(failing[0].removeprefix("[-]") if failing else reasons[0]) from error
    return access.server


def _of_file(file: Path) -> str:
    """Return the URL in a ready file.

    Raises `SettingsError` if the file cannot be read, or if no server listens at the URL.
    """
    try:
        url = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from error
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 443), _CONNECTING).close()
    except OSError as error:  # a server that was killed does not remove its file
        raise SettingsError(f"{file} names {url}, which does not answer: {error}") from error
    return url
