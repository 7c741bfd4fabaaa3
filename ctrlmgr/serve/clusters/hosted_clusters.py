"""Runs the clusters of a directory: wakes a cluster for its first request, and lets it sleep when it is unused.

Guarantees:
- At most one application runs for a cluster. Creating, waking, stopping and deleting a cluster exclude each other;
  other clusters do not wait.
- A cluster with a running request or a watch does not fall asleep.
- When the process stops, all clusters stop at the same time.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog

from ctrlmgr import threads
from ctrlmgr.clock import Clock
from ctrlmgr.errors import ApiError, CtrlmgrError, NotFound, ServiceUnavailable
from ctrlmgr.serve.clusters.cluster_directory import ClusterDirectory
from ctrlmgr.serve.clusters.running_cluster import Parts, RunningCluster
from ctrlmgr.server.clusters.mounted_server import MountedServer

log = structlog.get_logger(__name__)

_PATIENCE: Final = 30.0
"""Maximum number of seconds in which a cluster starts."""
_SWEEP: Final = 1.0
"""Seconds between searches for unused clusters."""
_STOPPING: Final = 8
"""Maximum number of clusters that are stopped at the same time."""


class HostedClusters:
    """A `Runnable` that runs the clusters in `directory`. The methods may be called on any thread."""

    name = "clusters"

    def __init__(
        self,
        directory: ClusterDirectory,
        fill: Callable[[str, Path], None],
        make: Callable[[str, Path], Parts],
        *,
        sleep_after: float,
        clock: Clock,
    ) -> None:
        """Create an instance; no cluster runs yet.

        `fill` writes the files of a new cluster, and `make` opens a cluster, each given its name and directory. An
        unused cluster stops after `sleep_after` seconds.
        """
        self._directory = directory
        self._fill = fill
        self._make = make
        self._sleep_after = sleep_after
        self._clock = clock
        self._awake: dict[str, RunningCluster] = {}
        self._has_stopped = False
        # The lock `_guard` guards all other attributes. The lock of a cluster in `_changing` is held while the cluster
        # changes.
        self._guard = threading.Lock()
        self._changing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def names(self) -> list[str]:
        """Return the names of all clusters, sorted."""
        return self._directory.names()

    def path(self, name: str) -> Path:
        """Return the directory of a cluster; raises `NotFound`."""
        return self._directory.path(name)

    def is_awake(self, name: str) -> bool:
        """Return whether a cluster runs."""
        return self.find(name) is not None

    def find(self, name: str) -> MountedServer | None:
        """Return the server of a cluster that is awake, otherwise None; does not block."""
        running = self._awake.get(name)
        return running.server if running is not None and not running.has_ended else None

    def awake(self, name: str) -> MountedServer | None:
        """Return the server of a cluster, after waking the cluster if it sleeps; None if the cluster does not exist.

        Raises `ApiError` if the cluster cannot start.
        """
        try:
            return self._running(name).server
        except NotFound:
            return None

    def create(self, name: str) -> None:
        """Create an empty cluster, and return when it is ready.

        Raises `BadRequest`, `AlreadyExists`, and `ServiceUnavailable` if the cluster does not become ready.
        """
        self._directory.create(name, lambda path: self._fill(name, path))
        log.info("cluster created", cluster=name)
        self._running(name).wait_ready(_PATIENCE)

    def fork(self, source: str, name: str, copy: Callable[[Path, Path, bool], None]) -> None:
        """Create a cluster from the log of the cluster `source`, and return when it is ready.

        `copy` copies the log, given both directories and whether `source` runs. Raises `NotFound` and the errors of
        `create`.
        """

        def fill(path: Path) -> None:
            self._fill(name, path)
            with self._changes(source):
                copy(self._directory.path(source), path, source in self._awake)

        self._directory.path(source)
        self._directory.create(name, fill)
        log.info("cluster forked", cluster=name, source=source)
        self._running(name).wait_ready(_PATIENCE)

    def delete(self, name: str) -> None:
        """Stop and delete a cluster; raises `NotFound`."""
        with self._changes(name):
            self._directory.path(name)
            self._stop(name)
            self._directory.delete(name)
        log.info("cluster deleted", cluster=name)

    def run(self, stop: threading.Event) -> None:
        """Let unused clusters sleep until `stop` is set, then stop all clusters."""
        while not stop.wait(_SWEEP):
            if unused := [name for name, running in self._items() if self._is_unused(running)]:
                threads.each("clusters", self._sleep, unused, _STOPPING)
        with self._guard:
            self._has_stopped = True
        for _, running in self._items():
            running.begin_stop()
        for _, running in self._items():
            running.stop()
        self._directory.close()

    def _items(self) -> list[tuple[str, RunningCluster]]:
        with self._guard:
            return [*self._awake.items()]

    def _running(self, name: str) -> RunningCluster:
        """Return a cluster that is awake, after starting it if it sleeps.

        Raises `NotFound`, and `ServiceUnavailable` if the cluster cannot start.
        """
        self._directory.path(name)  # a name without a cluster needs no lock
        with self._changes(name):
            running = self._awake.get(name)
            if running is None or running.has_ended or not self._answers(running):
                self._stop(name)
                running = self._start(name, self._directory.path(name))
        return running

    def _answers(self, running: RunningCluster) -> bool:
        return running.server.is_open or not running.server.opened.is_set()

    def _start(self, name: str, path: Path) -> RunningCluster:
        try:
            running = RunningCluster(name, lambda: self._make(name, path), clock=self._clock)
        except ApiError:
            raise
        except CtrlmgrError as error:
            raise ServiceUnavailable(f'cluster "{name}" did not start: {error}') from error
        with self._guard:
            self._awake[name] = running
            stopped = self._has_stopped
        if stopped:
            running.begin_stop()
        running.wait_open(_PATIENCE)
        log.debug("cluster awake", cluster=name)
        return running

    def _stop(self, name: str) -> None:
        """Stop a cluster if it runs; called while the cluster's lock is held."""
        with self._guard:
            running = self._awake.get(name)
        if running is not None:
            running.stop()
            with self._guard:
                del self._awake[name]

    def _sleep(self, name: str) -> None:
        with self._changes(name):
            running = self._awake.get(name)
            if running is not None and self._is_unused(running):
                self._stop(name)
                log.debug("cluster asleep", cluster=name)

    def _is_unused(self, running: RunningCluster) -> bool:
        server = running.server
        return not server.requests and self._clock.monotonic() - server.last_used >= self._sleep_after

    @contextmanager
    def _changes(self, name: str) -> Iterator[None]:
        with self._guard:
            changing = self._changing[name]
        with changing:
            yield
