"""`ctrlmgr serve`: run it."""

from __future__ import annotations

import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import click

from ctrlmgr.cli.options import CONTROLLERS, DATABASE, LEADER_ELECTION, LOG, configure_logging, reader, takes_settings
from ctrlmgr.settings import Loaded, Settings

if TYPE_CHECKING:
    from ctrlmgr.serve import Application


@click.command(short_help="Run the control plane.")
@takes_settings(
    *DATABASE,
    "server.role",
    "server.listen",
    "server.advertise_address",
    "service.cluster_ip_range",
    "service.node_port_range",
    "service.kubernetes_service_node_port",
    *CONTROLLERS,
    *LEADER_ELECTION,
    *LOG,
)
def serve(loaded: Loaded) -> None:
    """Run the control plane: serve the Kubernetes API over TLS, follow the event log, and reconcile.

    The database, the certificates and the administrator's kubeconfig are made when needed; the kubeconfig is in
    the data directory. SIGTERM and Ctrl-C stop it in order; doing it twice stops it at once, which loses nothing
    that was acknowledged.

    \b
    ctrlmgr serve
    ctrlmgr serve --listen 0.0.0.0:6443 --database postgresql://ctrlmgr@db.example.com/ctrlmgr
    ctrlmgr serve --controllers "*,-endpoint-controller"
    ctrlmgr serve --leader-elect=false
    """
    from ctrlmgr.serve import serve as run

    configure_logging(loaded.settings)
    is_for_people = loaded.settings.log.format == "console"  # machines have the log line that says where it listens
    run(
        loaded.settings,
        started=lambda application: _greet(application, loaded) if is_for_people else None,
        read_settings=reader(),
    )


def _greet(application: Application, loaded: Loaded) -> None:
    click.echo(f"ctrlmgr serves the Kubernetes API on {application.server.url}")
    click.echo(f"  use it             export KUBECONFIG={shlex.quote(str(application.kubeconfig))}")
    click.echo("  what is there?     kubectl api-resources; kubectl get namespaces")
    click.echo("  is it ready?       kubectl get --raw '/readyz?verbose'")
    click.echo(f"  what happened?     {_events_command(loaded)}")
    click.echo("  stop it with Ctrl-C")


def _events_command(loaded: Loaded) -> str:
    """Return what to type in another terminal, where neither this one's flags nor its PATH need be known."""
    from ctrlmgr.logging import mask

    program = "ctrlmgr" if shutil.which("ctrlmgr") else sys.argv[0]
    is_default = loaded.settings.database_url == Settings().database_url
    return f"{program} events --follow" + ("" if is_default else f" --database '{mask(loaded.settings.database_url)}'")
