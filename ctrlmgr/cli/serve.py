"""`ctrlmgr serve`: runs the control plane."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.options import MEMORY, configure_logging, reader, section_title, section_titles, takes_settings
from ctrlmgr.cli.recordings.serve_recording import playing, takes_recording
from ctrlmgr.cli.recordings.serve_recording import run as play
from ctrlmgr.cli.sectioned_help import SectionedCommand, SettingOption
from ctrlmgr.interpreter import collector_paused
from ctrlmgr.settings import Loaded, flags

if TYPE_CHECKING:
    from ctrlmgr.framework.remote.status_pages import StatusTls
    from ctrlmgr.serve import Application
    from ctrlmgr.serve.historical_server import PastApplication
    from ctrlmgr.settings import Settings


_FILE = click.Path(dir_okay=False, path_type=Path)

USUAL = (
    "--data-dir",
    "--database",
    "--listen",
    "--public-url",
    "--nodes",
    "--app",
    "--controllers",
    "--api-only",
    "--ready-file",
    "--at",
    "--recording",
    "--log-level",
    "--settings",
)
"""The options of `ctrlmgr serve` that the short `--help` describes."""

_SECTIONS_OF_CONTROLLERS = ("controllers", "leader_election", "log", "metrics")
_USED_BY_CONTROLLERS = (
    "service_accounts.private_key_file",
    "authentication.client_ca_file",
    "authorization.always_allow_paths",
    "server.listen",
    "server.feature_gates",
    "tls.cert_file",
    "tls.private_key_file",
)
"""The settings, besides the sections above, that are used by a process that runs only controllers."""


@click.command(cls=SectionedCommand, usual=USUAL, last_sections=section_titles(), short_help="Run the control plane.")
@takes_settings("server.role", *flags(), translates=True)
@arguments.at_option("Serve the state at this moment, read-only")
@takes_recording
@click.option(
    "--kubeconfig",
    cls=SettingOption,
    section=section_title("--kubeconfig"),
    type=_FILE,
    metavar="FILE",
    help=("Run only the controllers, against the cluster of this kubeconfig."),
)
@click.option(
    "--master",
    cls=SettingOption,
    section=section_title("--master"),
    metavar="URL",
    help=("Run only the controllers, against the API server at this URL instead of the kubeconfig's server."),
)
@click.option(
    "--use-service-account-credentials",
    "as_accounts",
    cls=SettingOption,
    section=section_title("--use-service-account-credentials"),
    type=bool,
    is_flag=False,
    flag_value=True,
    default=None,
    metavar="BOOL",
    help=(
        "With --kubeconfig: whether each controller writes as its own service account; by default the controllers "
        "write with the credentials of the kubeconfig. Without --kubeconfig, each controller writes as its own account."
    ),
)
@click.version_option(None, "--version", package_name="ctrlmgr", message="%(prog)s %(version)s")
def serve(
    loaded: Loaded,
    at: str | None,
    recording: Path | None,
    kubeconfig: Path | None,
    master: str | None,
    as_accounts: bool | None,
    **options: Any,
) -> None:
    """Run the control plane: serve the Kubernetes API over TLS, follow the event log, and reconcile.

    The command creates the database, the certificates and the administrator's kubeconfig if they do not exist. The
    administrator's kubeconfig is in the data directory. SIGTERM and Ctrl-C stop the server gracefully. A second signal
    stops the server immediately, and no acknowledged write is lost.

    \b
    ctrlmgr serve
    ctrlmgr serve --listen 0.0.0.0:6443 --database postgresql://ctrlmgr@db.example.com/ctrlmgr
    ctrlmgr serve --controllers "*,-endpoints-controller"
    ctrlmgr serve --leader-elect=false
    ctrlmgr serve --at 2026-01-02T03:04:05Z --listen 127.0.0.1:7443
    ctrlmgr serve --recording yesterday.jsonl.gz --speed 10
    """
    from ctrlmgr.framework.remote.leader_migration import check_alone

    # modules are never freed, so the garbage collector need not scan modules; these scans would take a third of the
    # start
    with collector_paused(freeze=True):
        from ctrlmgr.serve import serve as run

    configure_logging(loaded.settings)
    _filter_metrics(loaded.settings)
    if (what := playing(recording, options)) is not None:
        if at:
            raise click.UsageError(
                "--at and --recording exclude each other; move in a recording with `ctrlmgr play seek`"
            )
        play(loaded, what)
        return
    if kubeconfig or master:
        _run_controllers(loaded, kubeconfig, master, as_accounts=bool(as_accounts))
        return
    check_alone(loaded.settings)
    if as_accounts is False:
        raise click.UsageError(
            "--use-service-account-credentials=false needs --kubeconfig: each controller of this process writes as its "
            "own service account"
        )
    if at:
        _serve_past(loaded, at)
        return
    is_for_people = loaded.settings.log.format == "console"  # with JSON logs, a log line contains the address instead
    run(
        loaded.settings,
        started=lambda application: _greet(application, loaded) if is_for_people else None,
        read_settings=reader(),
    )


def _filter_metrics(settings: Settings) -> None:
    from ctrlmgr.settings.metric_filters import read_filters, use_filters

    metrics = settings.metrics
    use_filters(
        read_filters(
            metrics.disabled, metrics.allow_labels, metrics.allow_labels_manifest, metrics.show_hidden_for_version
        )
    )


def _run_controllers(loaded: Loaded, kubeconfig: Path | None, master: str | None, *, as_accounts: bool) -> None:
    """Run the controllers that the settings enable against another API server, as kube-controller-manager does.

    As in kube-controller-manager, the setting `master` replaces the server URL in the kubeconfig. If there is no
    kubeconfig, requests have no credentials.
    """
    from ctrlmgr.cli.operators.run import DEFAULT_QPS, run_against
    from ctrlmgr.framework.app_loading import load_app
    from ctrlmgr.framework.remote.controller_process import LEASE, SelectedControllers, builtins
    from ctrlmgr.framework.remote.issuing import IssuerFiles
    from ctrlmgr.settings.kubeconfig import access_at, load

    settings = loaded.settings.controllers
    access = load([kubeconfig]) if kubeconfig else access_at(str(master))
    if master:
        access = replace(access, server=access_at(master).server)
    files = IssuerFiles(loaded.settings, access)
    apps = [load_app(each, origin="serve") for each in settings.apps]
    chosen = SelectedControllers(apps, builtins(settings.enabled, files), lease=LEASE)
    is_default = loaded.is_default("controllers.kube_api_qps")
    qps = DEFAULT_QPS if is_default else settings.kube_api_qps
    _warn_of_unused(loaded)
    run_against(
        loaded,
        chosen,
        access,
        qps=qps,
        burst=settings.kube_api_burst,
        status_address=None if loaded.is_default("server.listen") else loaded.settings.server.address,
        files=files,
        as_accounts=as_accounts,
        serving=_status_tls(loaded.settings),
    )


def _status_tls(settings: Settings) -> StatusTls:
    from ctrlmgr.framework.remote.status_pages import StatusTls

    tls = settings.tls
    if bool(tls.cert_file) != bool(tls.private_key_file):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file must be given together")
    return StatusTls(tls.cert_file, tls.private_key_file, settings.authentication.client_ca_file)


def _warn_of_unused(loaded: Loaded) -> None:
    """Warn about each given flag that has an effect only in a process that serves the API."""
    used = (*_USED_BY_CONTROLLERS, *(f"{section}." for section in _SECTIONS_OF_CONTROLLERS))
    for key, flag in flags().items():
        if loaded.origins[key].startswith("--") and not key.startswith(used):
            click.echo(f"warning: {flag} has no effect with --kubeconfig: only the API server uses it", err=True)


def _serve_past(loaded: Loaded, at: str) -> None:
    from ctrlmgr.serve.historical_server import serve_past

    is_for_people = loaded.settings.log.format == "console"
    serve_past(loaded.settings, at, started=_greet_past if is_for_people else lambda application: None)


def _greet_past(application: PastApplication) -> None:
    moment = application.moment
    for resource in moment.lost:
        click.echo(
            f"note: {resource} is compacted beyond revision {moment.revision}; its objects are omitted", err=True
        )
    click.echo(f"ctrlmgr serves the state at revision {moment.revision}, read-only, on {application.server.url}")
    click.echo(f"  use it             export KUBECONFIG={shlex.quote(str(application.kubeconfig))}")
    click.echo("  list its objects   kubectl get all -A")
    click.echo(f"  open the page      {_program()} ui --kubeconfig {shlex.quote(str(application.kubeconfig))}")
    click.echo("  stop it with Ctrl-C")


def _greet(application: Application, loaded: Loaded) -> None:
    click.echo(f"ctrlmgr serves the Kubernetes API on {application.server.url}")
    click.echo(f"  use it             export KUBECONFIG={shlex.quote(str(application.kubeconfig))}")
    click.echo("  list its kinds     kubectl api-resources; kubectl get namespaces")
    click.echo("  check its health   kubectl get --raw '/readyz?verbose'")
    click.echo(f"  follow its events  {_events_command(loaded)}")
    click.echo(f"  open the page      {_page_command(application.kubeconfig, loaded)}")
    click.echo("  stop it with Ctrl-C")


def _events_command(loaded: Loaded) -> str:
    """Return the shell command with which a user can follow the events in another terminal.

    The shell command contains the program's path and the database, because the other terminal may have another PATH and
    other settings. If the log is in memory, the shell command uses the API, because only this process can read the log.
    """
    from ctrlmgr.logging import mask

    if loaded.settings.database_url == MEMORY:
        return "kubectl get events -A --watch    # the log is in memory and ends with this process"
    is_default = loaded.is_default("database.url") and loaded.is_default("data_dir")
    database = "" if is_default else f" --database '{mask(loaded.settings.database_url)}'"
    return f"{_program()} events --follow{database}"


def _page_command(kubeconfig: Path, loaded: Loaded) -> str:
    return f"{_program()} ui" + (
        "" if loaded.is_default("data_dir") else f" --kubeconfig {shlex.quote(str(kubeconfig))}"
    )


def _program() -> str:
    return "ctrlmgr" if shutil.which("ctrlmgr") else sys.argv[0]
