"""Creates the front of a serving process: its address, certificates, authentication and kubeconfig.

Guarantees: an error is raised before any component starts if the address is in use, if certificates or tokens are
unusable, or if other users may read the kubeconfig.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final, Protocol
from urllib.parse import urlsplit

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.authentication.service_account_claims import Find
from ctrlmgr.authentication.user import MASTERS, User
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.clock import Clock
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.front_proxy import FrontProxyCertificate
from ctrlmgr.http.http_server import Application as HttpApplication
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.http.tls import CertificateFiles, ensure_certificates
from ctrlmgr.http.tls_context import LOOPBACK, ServingContext
from ctrlmgr.manager import Runnable
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.serve.authentication import ServingAuthentication
from ctrlmgr.serve.identity.shared_identity import making, shared_token
from ctrlmgr.serve.serving_front_proxy import front_proxy_certificate
from ctrlmgr.serve.tls_options import tls_options
from ctrlmgr.server import App, HttpServer, Pages
from ctrlmgr.server.admin_kubeconfig import Claim, admin_token, write_kubeconfig
from ctrlmgr.server.aggregating.proxy_handler import Aggregator
from ctrlmgr.server.auditing.audit_filter import Auditing
from ctrlmgr.server.filters.in_flight_limits import InFlightLimits
from ctrlmgr.server.filters.outer_filters import OuterFilters
from ctrlmgr.server.filters.request_deadlines import RequestDeadlines
from ctrlmgr.server.filters.storage_version_barrier import StorageVersionBarrier
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.server.peers.peer_proxy import PeerProxy
from ctrlmgr.server.request_chain import ChainBackend, Limits
from ctrlmgr.settings import Settings

log = structlog.get_logger(__name__)

ADMIN = User("system:admin", "system:admin", (MASTERS,))

KUBECONFIG: Final = "kubeconfig"
"""The name of the administrator's kubeconfig in the data directory."""
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
_ELSEWHERE = {4: ("192.0.2.1", socket.AF_INET), 6: ("2001:db8::1", socket.AF_INET6)}
"""Addresses that are never assigned to a machine (RFC 5737, RFC 3849); packets to them take the default route."""


class Server(Runnable, Protocol):
    """A server that answers the requests of clients while it runs."""

    @property
    def url(self) -> str:
        """The URL under which clients reach the server; it may have a path."""

    @property
    def port(self) -> int:
        """The port of the address on which the requests arrive."""


class Front:
    """The address, certificates and authentication of a server."""

    registry = REGISTRY
    """The metrics that the server shows at `/metrics`."""
    path = ""
    """The start of the URL path of all requests, which an outer server removes; empty without an outer server."""

    def __init__(
        self,
        settings: Settings,
        find: Find,
        *,
        clock: Clock,
        random: Random,
        kubeconfig: str = KUBECONFIG,
        noted: Mapping[str, str] | None = None,
        on_use: Callable[[Object], None] = lambda secret: None,
    ) -> None:
        """Create missing files in the data directory and read existing files.

        Raises `SettingsError` if a file cannot be used. Files that several processes share are in the directory
        `server.identity_dir`, if this setting is set. `find` reads the objects to which tokens of service accounts are
        bound. `kubeconfig` is the name of the administrator's kubeconfig, which also contains the notes (`noted`) about
        the log. `on_use` is called with each Secret whose token is used.
        """
        self._settings = settings.server
        self._advertised = advertised_address(settings)
        self._server_name = LOOPBACK if settings.tls.cert_file else ""
        self._logs_requests = settings.log.requests
        self._ends_watches = settings.authorization.end_watches
        self._clock = clock
        self._random = random
        self.kubeconfig = settings.data_path / kubeconfig
        self._noted = noted
        self._claim: Claim | None = None
        shared = settings.identity_path
        with making(shared):
            self._token = shared_token(shared, random) if shared else admin_token(self.kubeconfig, random)
            self.files: CertificateFiles = ensure_certificates(
                settings.data_path / "pki", certificate_names(settings), clock=clock, shared=shared
            )
            self.front_proxy: FrontProxyCertificate = front_proxy_certificate(settings, self.files, clock=clock)
            self.serving = ServingContext(self.files, tls_options(settings))
            self.authentication = ServingAuthentication(
                settings,
                self.files,
                {self._token: ADMIN},
                find,
                clock=clock,
                random=random,
                on_use=on_use,
                front_proxy=self.front_proxy,
            )
        self.authenticator = self.authentication.authenticator

    def server(
        self,
        backend: ChainBackend,
        pages: Pages,
        authorizer: Authorizer,
        *,
        kinds: Kinds | None = None,
        delay: float = 0.0,
        housekeeping: Sequence[Callable[[], object]] = (),
        auditing: Auditing | None = None,
        limits: Limits | None = None,
        aggregator: Aggregator | None = None,
        barrier: StorageVersionBarrier | None = None,
        peers: PeerProxy | None = None,
    ) -> Server:
        """Return the HTTP server of `backend`, which also reloads certificates and tokens, and calls `housekeeping`.

        The server serves `kinds`, by default the kinds of the backend. If `limits` is None, the settings limit
        concurrent reads and writes. `barrier` refuses writes until StorageVersions are published. `peers` handles
        requests for resources that only other serving processes serve. After a request to stop, the server
        serves for `delay` more seconds. Raises `SettingsError` if the address is in use.
        """
        filters = OuterFilters(self._settings, random=self._random)
        app = App(
            backend,
            pages,
            self.authenticator,
            authorizer,
            clock=self._clock,
            random=self._random,
            limits=limits or InFlightLimits(self._settings.max_reads, self._settings.max_writes),
            kinds=kinds,
            auditing=auditing,
            ends_watches=self._ends_watches,
            aggregator=aggregator,
            barrier=barrier,
            peers=peers,
            filters=filters if filters.is_active else None,
            deadlines=RequestDeadlines(self._settings.request_timeout),
            logs_requests=self._logs_requests,
            watch_grace=self._settings.shutdown_watch_termination_grace_period,
        )
        reloads = [self.front_proxy.reload, *self.authentication.reloads]
        return self._listening(app, delay=delay, housekeeping=[*reloads, *housekeeping])

    def mounts(self) -> Mapping[str, Page]:
        """Return further pages, each for all paths below the page's name; a front without clusters has none."""
        return {}

    def members(self) -> Sequence[Runnable]:
        """Return further components that run while the server runs; a front without clusters has none."""
        return ()

    def _listening(self, app: App, *, delay: float, housekeeping: Sequence[Callable[[], object]]) -> Server:
        return HttpServer(
            self._served(app),
            self._settings.address,
            clock=self._clock,
            tls=self.serving.context,
            delay=delay,
            listens_until_drained=self._settings.shutdown_send_retry_after,
            shares_port=self._settings.permit_port_sharing,
            bounds=replace(DEFAULT, streams=self._settings.http2_max_streams_per_connection),
            housekeeping=[self.serving.reload, *housekeeping],
        )

    def _served(self, app: App) -> HttpApplication:
        """Return the application that the server runs."""
        return app

    def announce(self, url: str, *, claims: bool = True) -> None:
        """Write the administrator's kubeconfig for a server at `url`.

        If `claims` is set, this process locks the kubeconfig until the process ends. If another running process has
        locked the kubeconfig, this process writes another kubeconfig, whose name contains the port.
        """
        if claims:
            self._claim = Claim(self.kubeconfig)
            if not self._claim.is_held:
                taken = self.kubeconfig
                self.kubeconfig = taken.with_name(f"{taken.name}-{urlsplit(url).port}")
                log.warning("kubeconfig belongs to another server", taken=str(taken), ours=str(self.kubeconfig))
        server = self._settings.public_url.rstrip("/") or reachable(url, self._advertised)
        authority = self.files.authority.read_bytes()
        write_kubeconfig(
            self.kubeconfig,
            server=server,
            authority=authority,
            token=self._token,
            noted=self._noted,
            server_name=self._server_name,
        )

    def release(self) -> None:
        """Release the lock on the kubeconfig; delete a kubeconfig whose name contains the port."""
        if self._claim is not None:
            if not self._claim.is_held:
                self.kubeconfig.unlink(missing_ok=True)
            self._claim.end()
            self._claim = None


NewFront = Callable[..., Front]
"""Creates a front, with the arguments of `Front`."""


def reachable(url: str, advertised: str) -> str:
    """Return `url`, with the `advertised` address in place of a wildcard (0.0.0.0, ::)."""
    parts = urlsplit(url)
    if not _is_any(parts.hostname or ""):
        return url
    host = f"[{advertised}]" if ":" in advertised else advertised
    return f"{parts.scheme}://{host}:{parts.port}"


def external_url(settings: Settings, port: int) -> str:
    """Return the URL at which other processes reach this server."""
    if host := settings.server.external_hostname:
        return f"https://{host}" if host.rpartition(":")[2].isdecimal() else f"https://{host}:{port}"
    address = advertised_address(settings)
    return f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"


def noted_places(settings: Settings) -> dict[str, str]:
    """Return the entries of a kubeconfig from which commands learn this server's database and data directory.

    If `server.identity_dir` is set, the kubeconfigs of all processes are equal. An entry for the directory of one
    process would make the kubeconfigs differ.
    """
    scheme, _, path = settings.database_url.partition(":///")
    url = {"database": f"sqlite:///{Path(path).absolute()}"} if scheme == "sqlite" else {}
    folder = {} if settings.server.identity_dir else {"data-dir": str(settings.data_path.absolute())}
    return {**folder, **url}


def certificate_names(settings: Settings) -> list[str]:
    """Return every name and address that the serving certificate must contain."""
    host, _ = settings.server.address
    first_addresses = [str(ipaddress.ip_network(each)[1]) for each in settings.service.cluster_ip_range.split(",")]
    names = [*_LOCAL_NAMES, advertised_address(settings), *_SERVICE_NAMES, *first_addresses]
    names += [socket.gethostname(), *settings.server.certificate_names]
    if settings.server.external_hostname:
        names.append(public_host(f"https://{settings.server.external_hostname}"))
    if settings.server.public_url:
        names.append(public_host(settings.server.public_url))
    if not _is_any(host):
        names.append(host)
    if settings.tls.cert_file:
        names.append(LOOPBACK)
    return list(dict.fromkeys(names))


def public_host(url: str) -> str:
    """Return the host of `server.public_url`; raises `SettingsError` unless it is an https URL with a host."""
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme == "https" else None
    except ValueError:
        host = None
    if not host:
        raise SettingsError(f"server.public_url: {url!r} is not a URL; write https://HOST:PORT")
    return host


def advertised_address(settings: Settings) -> str:
    """Return the address at which other machines reach this server.

    Raises `SettingsError` if the address in `listen` has no valid host.
    """
    if settings.server.advertise_address:
        return settings.server.advertise_address
    host, _ = settings.server.address
    if _is_any(host):
        return default_route_address(ipaddress.ip_network(settings.service.cluster_ip_range.split(",")[0]).version)
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise SettingsError(f"server.listen: {host} is not an address of this machine: {error.strerror}") from error


def default_route_address(version: int) -> str:
    """Return this machine's address on its default route, or the loopback address if there is no such route.

    The function sends no packet.
    """
    address, family = _ELSEWHERE[version]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))
        except OSError:
            return "127.0.0.1" if version == 4 else "::1"
        return str(probe.getsockname()[0])


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
