"""The front of a cluster that another server serves under a path: its keys, authentication and kubeconfig.

Guarantees: a cluster has its own certificate authority for clients, its own key for tokens of service accounts, and its
own administrator's token. Therefore no credential of one cluster is valid in another. The outer server's authority
signs the certificate that clients verify.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from prometheus_client.registry import CollectorRegistry

from ctrlmgr.authentication.service_account_claims import Find
from ctrlmgr.http.tls import write_private
from ctrlmgr.serve.front import KUBECONFIG, Front
from ctrlmgr.server import App
from ctrlmgr.server.admin_kubeconfig import new_token, write_kubeconfig
from ctrlmgr.server.clusters.mounted_server import MountedServer, SharedLoop
from ctrlmgr.settings import Settings


class Outside(NamedTuple):
    """The outer server, as its clusters see it."""

    url: str
    """The URL of the outer server."""
    port: int
    authority: bytes
    """The authority that signed the outer server's certificate (PEM)."""
    server_name: str
    """The name in the outer server's certificate; empty if it is the host in the URL."""
    shared: SharedLoop


class HostedFront(Front):
    """The front of a cluster that the outer server serves below `path`."""

    def __init__(self, settings: Settings, find: Find, *, outside: Outside, path: str, **others: Any) -> None:
        """Read the files of the cluster in its data directory, as `Front` does with the arguments `others`."""
        self.registry = CollectorRegistry()  # the metrics of the process are about all clusters
        super().__init__(settings, find, **others)
        self.path = path
        self._outside = outside

    def announce(self, url: str, *, claims: bool = True) -> None:
        """Write the administrator's kubeconfig for the cluster at `url`; the outer server holds the lock."""
        write_cluster_kubeconfig(self.kubeconfig, url, self._outside, self._token, noted=self._noted)

    def _listening(self, app: App, *, delay: float, housekeeping: Sequence[Callable[[], object]]) -> MountedServer:
        url = f"{self._outside.url}{self.path}"
        return MountedServer(
            app, url, self._outside.port, self._outside.shared, clock=self._clock, housekeeping=housekeeping
        )


def write_identity(directory: Path, url: str, outside: Outside, random: Random) -> None:
    """Write the token and the key of a new cluster into its directory.

    The key that signs tokens of service accounts is an elliptic curve key, which is created much faster than RSA.
    """
    write_cluster_kubeconfig(directory / KUBECONFIG, url, outside, new_token(random))
    pki = directory / "pki"
    pki.mkdir(mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    write_private(pki / "sa.key", key.private_bytes(*pem))


def write_cluster_kubeconfig(
    path: Path, url: str, outside: Outside, token: str, *, noted: Mapping[str, str] | None = None
) -> None:
    """Write the administrator's kubeconfig of the cluster at `url`."""
    write_kubeconfig(
        path, server=url, authority=outside.authority, token=token, noted=noted, server_name=outside.server_name
    )
