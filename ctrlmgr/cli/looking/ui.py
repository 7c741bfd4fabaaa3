"""`ctrlmgr ui`: the way to the page."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from urllib.parse import quote

import click

from ctrlmgr.cli.options import configure_logging, takes_settings
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Loaded


@click.command(short_help="Open the page that shows the log.")
@takes_settings("data_dir")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="How to reach the server; by default what `serve` has written.",
)
@click.option("--open/--no-open", "opens", default=None, help="Open it in a browser; the default on a terminal.")
def ui(loaded: Loaded, kubeconfig: Path | None, opens: bool | None) -> None:
    """Print a link to the page of a running server, and open it if there is a browser.

    The link holds the kubeconfig's token, so keep it to yourself: the page takes it out of the address at once and
    forgets it with the tab. Where a browser does not trust the server's certificate, or the kubeconfig has no token, go
    through `kubectl proxy`.

    \b
    ctrlmgr ui
    ctrlmgr ui --kubeconfig ~/.kube/config --no-open
    """
    from ctrlmgr.recording.capture.kubeconfig import load

    configure_logging(loaded.settings)
    file = kubeconfig or loaded.settings.data_path / "kubeconfig"
    if not file.exists():
        raise SettingsError(f"there is no kubeconfig at {file}; start `ctrlmgr serve`, or name one with --kubeconfig")
    access = load([file])
    scheme, _, token = access.headers().get("authorization", "").partition(" ")
    link = f"{access.server}/ui/" + (f"#token={quote(token, safe='')}" if scheme == "Bearer" else "")
    click.echo(link)
    click.echo("or, for a browser that does not trust its certificate:", err=True)
    click.echo(f"  kubectl --kubeconfig {file} proxy    then http://127.0.0.1:8001/ui/", err=True)
    if sys.stdout.isatty() if opens is None else opens:
        _open(link)


def _open(link: str) -> None:
    """Open a browser where there is a screen for it; a terminal's own would take the terminal."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        click.echo("there is no screen here to open it on", err=True)
    elif not webbrowser.open(link):
        click.echo("no browser could be opened", err=True)
