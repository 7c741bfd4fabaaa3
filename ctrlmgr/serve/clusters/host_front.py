"""The front of a process that serves many clusters: it passes requests on, and serves `/clusters`.

Guarantees: the clusters stop before the server stops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Protocol

from ctrlmgr.authentication.service_account_claims import Find
from ctrlmgr.clock import Clock
from ctrlmgr.encryption import providers_from
from ctrlmgr.errors import BadRequest
from ctrlmgr.eventlog import EventLog, open_log
from ctrlmgr.http.http_server import Application as HttpApplication
from ctrlmgr.manager import Runnable
from ctrlmgr.serve.clusters.cluster_directory import ClusterDirectory
from ctrlmgr.serve.clusters.cluster_forks import fork_cluster
from ctrlmgr.serve.clusters.hosted_clusters import HostedClusters
from ctrlmgr.serve.clusters.hosted_front import HostedFront, Outside, write_identity
from ctrlmgr.serve.clusters.hosted_settings import settings_of
from ctrlmgr.serve.clusters.running_cluster import Parts, Runs
from ctrlmgr.serve.front import KUBECONFIG, Front, Server, reachable
from ctrlmgr.server import App
from ctrlmgr.server.clusters.cluster_router import ClusterRouter
from ctrlmgr.server.clusters.clusters_page import ClustersPage, NewCluster
from ctrlmgr.server.clusters.mounted_server import MountedServer, SharedLoop
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.settings import Settings


class ClusterApplication(Runs, Protocol):
    """The application of a cluster, before it runs."""

    @property
    def server(self) -> Server:
        """The server of the cluster."""

    def announce(self, *, claims: bool = True) -> None:
        """Write the administrator's kubeconfig."""


Make = Callable[..., ClusterApplication]
"""Creates the application of a cluster: `Application`."""


class HostFront(Front):
    """The front of a process that serves the clusters of a directory."""

    def __init__(
        self,
        settings: Settings,
        find: Find,
        *,
        clock: Clock,
        random: Random,
        make: Make,
        **others: Any,
    ) -> None:
        """Open the directory of clusters, and create the files of `Front`; `make` creates a cluster's application.

        `others` are further arguments of `Front`. Raises `SettingsError` if the directory cannot be used.
        """
        super().__init__(settings, find, clock=clock, random=random, **others)
        self._all_settings = settings
        self._make = make
        self._shared = SharedLoop()
        self._outside: Outside | None = None
        directory = ClusterDirectory(Path(settings.clusters.directory).expanduser(), random)
        self._clusters = HostedClusters(
            directory, self._fill, self._open, sleep_after=settings.clusters.sleep_after, clock=clock
        )
        self._page = ClustersPage(self)

    def mounts(self) -> Mapping[str, Page]:
        """Return the page that administers the clusters."""
        return {"clusters": self._page}

    def members(self) -> Sequence[Runnable]:
        """Return the clusters, which run while the server runs."""
        return (self._clusters,)

    def all(self) -> list[dict[str, Any]]:
        """Return a description of each cluster, sorted by name."""
        return [self._description(name) for name in self._clusters.names()]

    def describe(self, name: str) -> dict[str, Any]:
        """Return the description of a cluster, with its kubeconfig; raises `NotFound`."""
        kubeconfig = self._clusters.path(name) / KUBECONFIG
        return {**self._description(name), "kubeconfig": kubeconfig.read_text(encoding="utf-8")}

    def create(self, new: NewCluster) -> dict[str, Any]:
        """Create a cluster, and return its description when it is ready; raises `ApiError`."""
        if new.source:
            self._clusters.fork(new.source, new.name, partial(self._copy, new.at))
        elif new.at:
            raise BadRequest("at needs from: an empty cluster has no history")
        else:
            self._clusters.create(new.name)
        return self.describe(new.name)

    def delete(self, name: str) -> None:
        """Delete a cluster; raises `NotFound` if the cluster does not exist."""
        self._clusters.delete(name)

    def _description(self, name: str) -> dict[str, Any]:
        is_awake = self._clusters.is_awake(name)
        return {"name": name, "server": self._url(name), "state": "awake" if is_awake else "asleep"}

    def _listening(self, app: App, *, delay: float, housekeeping: Sequence[Callable[[], object]]) -> Server:
        server = super()._listening(app, delay=delay, housekeeping=housekeeping)
        url = self._all_settings.server.public_url.rstrip("/") or reachable(server.url, self._advertised)
        authority = self.files.authority.read_bytes()
        self._outside = Outside(url, server.port, authority, self._server_name, self._shared)
        return server

    def _served(self, app: App) -> HttpApplication:
        return ClusterRouter(app, self._clusters, self._shared, self._page)

    def _reached(self) -> Outside:
        """Return the address of this server, which is known once its server exists."""
        assert self._outside is not None
        return self._outside

    def _url(self, name: str) -> str:
        return f"{self._reached().url}{_path(name)}"

    def _fill(self, name: str, directory: Path) -> None:
        write_identity(directory, self._url(name), self._reached(), self._random)

    def _copy(self, at: str, source: Path, target: Path, is_open: bool) -> None:
        fork_cluster(source, target, at, is_open=is_open, clock=self._clock, random=self._random)

    def _open(self, name: str, directory: Path) -> Parts:
        """Open the log of a cluster, and create its application."""
        settings = settings_of(self._all_settings, directory, self.files.authority)
        event_log = open_log(
            settings.database_url,
            clock=self._clock,
            random=self._random,
            migrate=True,
            providers=providers_from(settings.database.encryption_provider_config, self._clock),
        )
        try:
            application = self._created(name, settings, event_log)
            server = application.server
            assert isinstance(server, MountedServer)
            application.announce()
        except BaseException:
            event_log.close()
            raise
        return Parts(event_log, application, server)

    def _created(self, name: str, settings: Settings, event_log: EventLog) -> ClusterApplication:
        front = partial(HostedFront, outside=self._reached(), path=_path(name))
        return self._make(settings, event_log, clock=self._clock, random=self._random, new_front=front)


def _path(name: str) -> str:
    return f"/clusters/{name}"
