"""Connects a serving process with its peers: the other processes that serve the same log."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

from ctrlmgr.authentication.x509_verification import read_certificates
from ctrlmgr.clock import Clock
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.proxying.upstream_address import authority
from ctrlmgr.manager import Hooks
from ctrlmgr.serve.front import Front, advertised_address
from ctrlmgr.serve.identity.signing_keys import server_identity
from ctrlmgr.server import Backend
from ctrlmgr.server.aggregating.proxy_handler import Aggregator
from ctrlmgr.server.peers.excluded_versions import ExcludedVersions
from ctrlmgr.server.peers.peer_proxy import PeerProxy
from ctrlmgr.server.peers.peer_servers import PeerServers
from ctrlmgr.settings import Settings

GATE: Final = "UnknownVersionInteroperabilityProxy"


def peer_address(settings: Settings, port: int) -> str:
    """Return the address (HOST:PORT) to which peers forward requests; empty if the feature gate is off.

    `port` is the port on which the server listens.
    """
    if not (is_on(GATE) and is_on("APIServerIdentity")):
        return ""
    server = settings.server
    if server.peer_advertise_ip and server.peer_advertise_port:
        return authority(server.peer_advertise_ip, int(server.peer_advertise_port))
    return authority(advertised_address(settings), port)


def new_peer_proxy(
    settings: Settings,
    backend: Backend,
    front: Front,
    aggregator: Aggregator | None,
    kinds: Kinds,
    *,
    clock: Clock,
    random: Random,
) -> PeerProxy | None:
    """Return the proxy that forwards requests for resources that only peers serve; None if the settings need none.

    Raises `SettingsError` if the settings are wrong.
    """
    _check(settings)
    file = settings.server.peer_ca_file
    if not file or aggregator is None:
        return None
    authorities = peer_authorities(Path(file).expanduser())
    own, cacher, certificate = server_identity(settings), backend.engine.cacher, front.front_proxy
    servers = PeerServers(cacher, own, lambda: certificate.pem, authorities, clock=clock)
    return PeerProxy(servers, ExcludedVersions(cacher, clock=clock), aggregator, kinds, own, random)


def add_peer_hooks(hooks: Hooks, proxy: PeerProxy | None) -> None:
    """Register the hooks of a proxy under Kubernetes' names."""
    if proxy is not None:
        for name in ("mixed-version-proxy-handler", "local-discovery-cache-sync", "peer-discovery-workers"):
            hooks.add_post_start(name, is_finished=lambda: proxy.is_running)


def _check(settings: Settings) -> None:
    server = settings.server
    named = {
        "--peer-ca-file": server.peer_ca_file,
        "--peer-advertise-ip": server.peer_advertise_ip,
        "--peer-advertise-port": server.peer_advertise_port,
    }
    if not is_on(GATE):
        for flag in (flag for flag, value in named.items() if value):
            raise SettingsError(f"{flag} requires {GATE} feature to be turned on")
    if server.peer_ca_file and not is_on("APIServerIdentity"):
        raise SettingsError("--peer-ca-file requires APIServerIdentity feature to be turned on")
    port = server.peer_advertise_port
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise SettingsError(f"--peer-advertise-port is {port!r}; it must be a port (1 to 65535)")


def peer_authorities(file: Path) -> str:
    """Return the certificates in a file as PEM; raises `SettingsError` if the file cannot be used."""
    try:
        text = file.read_text(encoding="ascii")
        read_certificates(text.encode("ascii"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"--peer-ca-file: {file} cannot be used: {error}") from error
    return text
