"""`ctrlmgr ui`: prints the link to the web page, and opens the page in a browser."""

from __future__ import annotations

import html
import os
import shlex
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import click

from ctrlmgr.cli.inspect import current_cluster
from ctrlmgr.cli.options import configure_logging, takes_settings
from ctrlmgr.errors import CtrlmgrError, SettingsError
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.settings.kubeconfig import Access

_PATIENCE = 5.0
"""The timeout of the connection to the server, in seconds."""
SHOWN_FOR = 30.0
"""The number of seconds after which the file with the link is removed."""


@click.command(short_help="Open the web page that shows the log.")
@takes_settings("data_dir")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The kubeconfig of the server; by default kubectl's, or the one that `serve` wrote.",
)
@click.option(
    "--context", default="", metavar="NAME", help="The context of the kubeconfig; by default the current context."
)
@click.option(
    "--open/--no-open", "opens", default=None, help=("Open the page in a browser; this is the default on a terminal.")
)
def ui(loaded: Loaded, kubeconfig: Path | None, context: str, opens: bool | None) -> None:
    """Print a link to the web page of a running server, and open the link if a browser is available.

    The link contains the kubeconfig's token, so keep it secret. The web page removes the token from the address at
    once, and stores the token only until the tab is closed. A browser's command line is visible to all users of the
    machine. Therefore the browser gets the link from a file that only you can read. The file with the link is removed
    after 30 seconds. If your browser does not trust the server's certificate, or the kubeconfig has no token, use
    `kubectl proxy`.

    \b
    ctrlmgr ui
    ctrlmgr ui --kubeconfig ~/.kube/config --no-open
    """
    configure_logging(loaded.settings)
    access, options = _found(loaded, kubeconfig, context)
    scheme, _, token = access.headers().get("authorization", "").partition(" ")
    link = f"{access.server}/ui/" + (f"#token={quote(token, safe='')}" if scheme == "Bearer" else "")
    _check(access.server, access.proxy)
    opening = sys.stdout.isatty() if opens is None else opens
    click.echo(link)
    click.echo("or, if your browser does not trust its certificate:", err=True)
    click.echo(f"  {shlex.join(('kubectl', *options, 'proxy'))}    then http://127.0.0.1:8001/ui/", err=True)
    if opening:
        _open(link, is_secret=scheme == "Bearer")


def _found(loaded: Loaded, kubeconfig: Path | None, context: str) -> tuple[Access, list[str]]:
    """Return the URL and the credentials of the server, and the options with which kubectl reaches it.

    Raises `SettingsError` if there is no usable kubeconfig.
    """
    from ctrlmgr.settings.kubeconfig import load

    more = ["--context", context] if context else []
    if kubeconfig or context:
        options = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
        return current_cluster.access_named(kubeconfig, context), [*options, *more]
    if (access := current_cluster.access_implied(loaded)) is not None:
        return access, []
    file = loaded.settings.data_path / "kubeconfig"
    if not file.exists():
        raise SettingsError(
            f"there is no kubeconfig at {file}; start `ctrlmgr serve`, or give another one with --kubeconfig"
        )
    return load([file]), ["--kubeconfig", str(file)]


def _check(server: str, proxy: str) -> None:
    """Raise `CtrlmgrError` unless a process listens at the server's address.

    A server that is reached through a proxy is not checked.
    """
    parts = urlsplit(server)
    if proxy or not parts.hostname:
        return
    try:
        socket.create_connection(
            (parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)), _PATIENCE
        ).close()
    except OSError as problem:
        message = (problem.strerror or str(problem)).lower()
        raise CtrlmgrError(f"no server answers at {server} ({message}): is `ctrlmgr serve` running?") from problem


def _open(link: str, *, is_secret: bool) -> None:
    """Open a browser if there is a graphical display, because a browser in text mode would occupy the terminal."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        click.echo("no browser was opened: there is no display", err=True)
    elif not is_secret:
        _show(link)
    else:
        with _in_a_file(link) as address:
            if _show(address):
                click.echo("waiting until the browser has read the link (press Ctrl-C when the page is open)", err=True)
                threading.Event().wait(SHOWN_FOR)


def _show(address: str) -> bool:
    if webbrowser.open(address):
        return True
    click.echo("no browser could be opened", err=True)
    return False


@contextmanager
def _in_a_file(link: str) -> Iterator[str]:
    """Yield the address of a page that redirects to `link` and that only this user can read.

    Remove the page afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-ui-") as folder:  # the directory is created with mode 0700
        file = Path(folder) / "open.html"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as page:
            page.write(
                '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
                f'<meta http-equiv="refresh" content="0; url={html.escape(link)}"><title>ctrlmgr</title>'
            )
        yield file.as_uri()
