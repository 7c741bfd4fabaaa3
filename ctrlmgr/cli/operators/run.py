"""`ctrlmgr run`: runs controllers in a separate process, against any Kubernetes API server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from ctrlmgr.cli.options import CONTROLLERS, LEADER_ELECTION, LOG, configure_logging, takes_settings
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.framework.remote.controller_process import SelectedControllers
    from ctrlmgr.framework.remote.issuing import IssuerFiles
    from ctrlmgr.framework.remote.status_pages import StatusTls
    from ctrlmgr.framework.webhooks.webhook_address import WebhookOptions
    from ctrlmgr.settings.kubeconfig import Access

_FILE = click.Path(dir_okay=False, path_type=Path)
_SERVED_ONLY = ("enabled", "apps", "start_interval", "kube_api_qps", "kube_api_burst", "root_ca_file")
_NOT_HERE = tuple(f"controllers.{name}" for name in _SERVED_ONLY)
DEFAULT_QPS = 20.0
DEFAULT_BURST = 30
"""The defaults of kube-controller-manager: the maximum average number of requests per second, and the maximum number of
requests in a burst.
"""
OPTIONS = tuple(key for key in CONTROLLERS if key not in _NOT_HERE)


@click.command(short_help="Run controllers in this process, against any cluster.")
@click.argument("apps", nargs=-1, required=True, metavar="APP...")
@takes_settings(*LOG, *LEADER_ELECTION, *OPTIONS)
@click.option("--kubeconfig", type=_FILE, metavar="FILE", help="The kubeconfig of the cluster; by default kubectl's.")
@click.option(
    "--context", default="", metavar="NAME", help="The context of the kubeconfig; by default the current context."
)
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAMESPACE",
    help="Watch only objects of this namespace; the Lease is also in this namespace, unless you set its namespace.",
)
@click.option(
    "--kube-api-qps",
    default=DEFAULT_QPS,
    metavar="COUNT",
    show_default=True,
    help="Maximum API requests per second on average; 0 for no limit.",
)
@click.option(
    "--kube-api-burst",
    default=DEFAULT_BURST,
    metavar="COUNT",
    show_default=True,
    help="Maximum API requests that are sent at once.",
)
@click.option(
    "--status-address",
    metavar="HOST:PORT",
    help="Serve /metrics, /healthz and /readyz on this address, over HTTP without TLS.",
)
@click.option(
    "--no-definitions", is_flag=True, help=("Do not install the CustomResourceDefinitions of the apps' kinds.")
)
@click.option("--no-admission", is_flag=True, help="Do not serve the admission functions of the apps as webhooks.")
@click.option(
    "--webhook-url",
    default="",
    metavar="URL",
    help="The URL at which the API server calls the webhooks of this process, such as https://10.0.0.7:9443.",
)
@click.option(
    "--webhook-service",
    default="",
    metavar="NAMESPACE/NAME",
    help="The Service through which the API server reaches the webhooks of this process, at port 443 of the Service.",
)
@click.option(
    "--webhook-listen",
    metavar="HOST:PORT",
    help=(
        "The address on which the webhooks listen; by default the port of --webhook-url, 9443 behind a Service, "
        "else a free port."
    ),
)
def run(
    loaded: Loaded,
    apps: tuple[str, ...],
    kubeconfig: Path | None,
    context: str,
    namespace: str,
    kube_api_qps: float,
    kube_api_burst: int,
    status_address: str | None,
    no_definitions: bool,
    no_admission: bool,
    webhook_url: str,
    webhook_service: str,
    webhook_listen: str | None,
) -> None:
    """Run controllers against a cluster, until Ctrl-C or SIGTERM.

    An APP is `module:attribute`, a file such as `shop.py`, the name of an app in an installed package, or
    `builtin:NAME,…` for built-in controllers. If several processes share a Lease, only the leader runs its controllers.
    By default, the Lease has the name of the apps; `--leader-elect-resource-name` sets another name.

    The process serves the admission functions of apps as webhooks. The process registers the webhooks when it starts,
    and removes them when it stops. If the API server runs on another machine, give `--webhook-url` or
    `--webhook-service`.

    \b
    ctrlmgr run shop.py
    ctrlmgr run shop:app --namespace shop --no-definitions
    ctrlmgr run shop:app --kubeconfig prod.yaml --leader-elect-resource-namespace shop
    ctrlmgr run builtin:endpoints-controller,endpointslice-controller --leader-elect=false
    """
    from ctrlmgr.cli.recordings.record import access_of
    from ctrlmgr.framework.remote.controller_process import choose

    configure_logging(loaded.settings)
    chosen = choose(apps, without_admission=no_admission)
    run_against(
        loaded,
        chosen,
        access_of(kubeconfig, context),
        namespace=namespace,
        qps=kube_api_qps,
        burst=kube_api_burst,
        status_address=_address("--status-address", status_address),
        installs=not no_definitions,
        webhooks=_webhooks(webhook_url, webhook_service, webhook_listen),
    )


def run_against(
    loaded: Loaded,
    chosen: SelectedControllers,
    access: Access,
    *,
    namespace: str = "",
    qps: float = DEFAULT_QPS,
    burst: int = DEFAULT_BURST,
    status_address: tuple[str, int] | None = None,
    installs: bool = True,
    webhooks: WebhookOptions | None = None,
    files: IssuerFiles | None = None,
    as_accounts: bool = False,
    serving: StatusTls | None = None,
) -> None:
    """Run controllers against the cluster of `access` until a signal arrives; the settings name the Lease.

    `qps` is the number of requests per second, and `burst` is the number of requests that may be sent at once. If
    `installs` is true, the CustomResourceDefinitions of the apps' kinds are installed first. `files` are the keys of
    controllers that issue tokens and certificates. If `as_accounts` is true, each built-in controller writes as its own
    ServiceAccount. If `serving` is given, the status pages are served with TLS.
    """
    from ctrlmgr import interpreter
    from ctrlmgr.api.resource import Key
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.framework.remote.controller_process import Options, RemoteProcess
    from ctrlmgr.framework.webhooks.webhook_address import WebhookOptions
    from ctrlmgr.leaderelection import Timing
    from ctrlmgr.randomness import PooledRandom
    from ctrlmgr.serve.signals import run_until_signalled

    elects = loaded.settings.leader_election
    is_named = loaded.origins["leader_election.resource_name"] != "default"
    is_placed = loaded.origins["leader_election.resource_namespace"] != "default"
    where = namespace if namespace and not is_placed else elects.resource_namespace
    options = Options(
        qps,
        burst,
        installs,
        Key(where, elects.resource_name if is_named else ""),
        elects.enabled,
        Timing(elects.lease_duration, elects.renew_deadline, elects.retry_period),
        status_address,
        namespace,
        webhooks or WebhookOptions(),
        files,
        as_accounts,
        serving,
    )
    interpreter.tune()
    process = RemoteProcess(access, chosen, loaded.settings, options, clock=SystemClock(), random=PooledRandom())
    run_until_signalled(process.run)


def _webhooks(url: str, service: str, listen: str | None) -> WebhookOptions:
    from ctrlmgr.api.resource import Key
    from ctrlmgr.framework.webhooks.webhook_address import WebhookOptions

    if url and service:
        raise click.UsageError("--webhook-url and --webhook-service exclude each other")
    parts = urlsplit(url)
    if url and (parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment):
        raise click.UsageError(f"--webhook-url is {url!r}; it must be a URL such as https://10.0.0.7:9443")
    place = Key.parse(service)
    if service and not (place.namespace and place.name):
        raise click.UsageError(
            f"--webhook-service is {service!r}; it must be NAMESPACE/NAME such as shop/shop-webhooks"
        )
    return WebhookOptions(url, place if service else None, _address("--webhook-listen", listen))


def _address(option: str, text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) <= 65535):
        raise click.UsageError(f"{option} is {text!r}; it must be HOST:PORT such as 127.0.0.1:8080")
    return host.strip("[]"), int(port)
