"""`ctrlmgr cluster`: creates, lists and deletes the clusters of a server that runs with `serve --clusters`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ctrlmgr.cli.options import takes_settings
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Loaded

_FILE = click.Path(dir_okay=False, path_type=Path)


def _takes_server(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name the server."""
    for option in (
        click.option("--context", default="", metavar="NAME", help="The context of the server's kubeconfig."),
        click.option(
            "--kubeconfig", type=_FILE, metavar="FILE", help="The kubeconfig of the server; kubectl's if none."
        ),
        takes_settings("data_dir"),
    ):
        function = option(function)
    return function


@click.group(short_help="Create, fork, list and delete clusters of one server.")
def cluster() -> None:
    """Create, fork, list and delete the clusters of a server that runs with `serve --clusters`.

    Each cluster has its own log, kinds, rights, admission and controllers. Its address is a path of the server.

    \b
    ctrlmgr serve --clusters ~/clusters
    ctrlmgr cluster create test-1
    ctrlmgr cluster kubeconfig test-1 > test-1.yaml
    kubectl --kubeconfig test-1.yaml get namespaces
    ctrlmgr cluster fork test-1 test-2
    ctrlmgr cluster delete test-1
    """


@cluster.command(short_help="Create a cluster.")
@_takes_server
@click.option("--output", "-o", type=_FILE, metavar="FILE", help="Write the kubeconfig of the cluster into this file.")
@click.argument("name")
def create(loaded: Loaded, kubeconfig: Path | None, context: str, output: Path | None, name: str) -> None:
    """Create the empty cluster NAME, and print its URL when it is ready.

    \b
    ctrlmgr cluster create test-1 --output test-1.yaml
    """
    made = _Server(loaded, kubeconfig, context).ask("POST", "/clusters", {"name": name})
    if output is not None:
        _write(output, made["kubeconfig"])
    click.echo(made["server"])


@cluster.command(short_help="Create a cluster with the history of another.")
@_takes_server
@click.option("--at", metavar="REV", default="", help="The last revision or time that the fork contains.")
@click.option("--output", "-o", type=_FILE, metavar="FILE", help="Write the kubeconfig of the fork into this file.")
@click.argument("source")
@click.argument("name")
def fork(
    loaded: Loaded, kubeconfig: Path | None, context: str, at: str, output: Path | None, source: str, name: str
) -> None:
    """Create the cluster NAME with the objects and the history of the cluster SOURCE, and print its URL.

    Both clusters continue independently. The fork has its own keys, so tokens of SOURCE are not valid in it.

    \b
    ctrlmgr cluster fork prepared test-1
    ctrlmgr cluster fork prepared before --at 1200
    """
    body = {"name": name, "from": source, "at": at}
    made = _Server(loaded, kubeconfig, context).ask("POST", "/clusters", body)
    if output is not None:
        _write(output, made["kubeconfig"])
    click.echo(made["server"])


@cluster.command("list", short_help="List the clusters.")
@_takes_server
def list_(loaded: Loaded, kubeconfig: Path | None, context: str) -> None:
    """List the clusters of the server, each with its state and its URL.

    \b
    ctrlmgr cluster list
    """
    for each in _Server(loaded, kubeconfig, context).ask("GET", "/clusters")["clusters"]:
        click.echo(f"{each['name']:<24} {each['state']:<7} {each['server']}")


@cluster.command(short_help="Delete a cluster.")
@_takes_server
@click.argument("name")
def delete(loaded: Loaded, kubeconfig: Path | None, context: str, name: str) -> None:
    """Delete the cluster NAME with its log.

    \b
    ctrlmgr cluster delete test-1
    """
    _Server(loaded, kubeconfig, context).ask("DELETE", f"/clusters/{name}")
    click.echo(f"cluster {name} is deleted")


@cluster.command("kubeconfig", short_help="Print the kubeconfig of a cluster.")
@_takes_server
@click.argument("name")
def kubeconfig_(loaded: Loaded, kubeconfig: Path | None, context: str, name: str) -> None:
    """Print the kubeconfig of the administrator of the cluster NAME. It contains a token, so keep it secret.

    \b
    ctrlmgr cluster kubeconfig test-1 > test-1.yaml
    """
    click.echo(_Server(loaded, kubeconfig, context).ask("GET", f"/clusters/{name}")["kubeconfig"], nl=False)


class _Server:
    """The server whose clusters the commands change."""

    def __init__(self, loaded: Loaded, kubeconfig: Path | None, context: str) -> None:
        """Use the server of a kubeconfig, as `ctrlmgr wait` finds it; raises `SettingsError` if there is none."""
        from ctrlmgr.cli.wait import server_access
        from ctrlmgr.recording.capture.cluster_client import Cluster

        self._client = Cluster(server_access(loaded, kubeconfig, context), program="ctrlmgr-cluster")

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and return the decoded response; raises `ApiError`."""
        import msgspec

        sent = None if body is None else msgspec.json.encode(body)
        answer: dict[str, Any] = msgspec.json.decode(self._client.request(method, path, {}, sent))
        return answer


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror}") from error
