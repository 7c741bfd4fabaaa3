"""A cluster that is awake: its open log, its application, and the thread of its manager.

Guarantees: an error of the application ends only this cluster; the error is logged. The log is closed after the
application has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

import structlog

from ctrlmgr import threads
from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError, ServiceUnavailable
from ctrlmgr.eventlog import EventLog
from ctrlmgr.server.clusters.mounted_server import MountedServer

log = structlog.get_logger(__name__)

_LOOK_AGAIN = 0.005
"""Seconds between checks of a cluster that starts."""


class Runs(Protocol):
    """The application of a cluster."""

    def is_ready(self) -> bool:
        """Return whether all checks of `/readyz` pass."""

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set."""


class Parts(NamedTuple):
    """The log of a cluster, and the application that uses it."""

    event_log: EventLog
    application: Runs
    server: MountedServer


class RunningCluster:
    """A cluster whose application runs on a thread. The methods may be called on any thread."""

    def __init__(self, name: str, make: Callable[[], Parts], *, clock: Clock) -> None:
        """Open the log and create the application with `make`, and start it; raises the errors of `make`."""
        self.name = name
        self._clock = clock
        self._parts = make()
        self._stop = threading.Event()
        self._pause = threading.Condition()
        self._error: BaseException | None = None
        self._ended = threading.Event()
        threads.start(f"cluster {name}", self._run)

    @property
    def server(self) -> MountedServer:
        """The server that answers the requests of the cluster."""
        return self._parts.server

    @property
    def has_ended(self) -> bool:
        """Whether the application has ended and the log is closed."""
        return self._ended.is_set()

    def wait_open(self, patience: float) -> None:
        """Return when the server is open; raises `ServiceUnavailable` if it does not open within `patience` seconds."""
        self._wait(self.server.opened.is_set, "answer", patience)

    def wait_ready(self, patience: float) -> None:
        """Return when the cluster is ready; raises `ServiceUnavailable` if it is not within `patience` seconds."""
        self._wait(self._parts.application.is_ready, "become ready", patience)

    def begin_stop(self) -> None:
        """Ask the cluster to stop, without waiting."""
        self._stop.set()

    def stop(self) -> None:
        """Stop the cluster, and return when its log is closed."""
        self._stop.set()
        self._ended.wait()

    def _run(self) -> None:
        try:
            self._parts.application.run(self._stop)
        except Exception as error:  # only this cluster ends, and its next request starts it again
            self._error = error
            log.error("cluster failed", cluster=self.name, exc_info=error)
        finally:
            self._parts.event_log.close()
            self._ended.set()

    def _wait(self, is_done: Callable[[], bool], what: str, patience: float) -> None:
        until = self._clock.monotonic() + patience
        with self._pause:
            while not is_done():
                if self.has_ended or self._stop.is_set():
                    raise ServiceUnavailable(f'cluster "{self.name}" did not start: {_why(self._error)}')
                if self._clock.monotonic() > until:
                    raise ServiceUnavailable(f'cluster "{self.name}" did not {what} within {patience:g} s')
                self._clock.wait(self._pause, _LOOK_AGAIN)


def _why(error: BaseException | None) -> str:
    return str(error) if isinstance(error, CtrlmgrError) else "it has ended"
