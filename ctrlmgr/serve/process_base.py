"""Implements the common part of all serving processes: a front, a server, and a manager of runnables.

Guarantees: every serving process stops in the same way. If a process does not stop in time, `run` raises
`CtrlmgrError`.
"""

from __future__ import annotations

import threading
from pathlib import Path

from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.manager import GRACE, Manager
from ctrlmgr.serve.front import Front, Server
from ctrlmgr.server import Check


class ServingProcess:
    """A serving process that is not yet started. Each subclass creates its own `server`."""

    server: Server

    def __init__(self, front: Front, *, clock: Clock, patience: float = 0.0) -> None:
        """Create a process that serves behind `front`; the process's manager has no runnables yet.

        Each phase of the manager has its default grace period and `patience` more seconds to stop.
        """
        self._front = front
        self._stop = threading.Event()
        self.manager = Manager(clock=clock, grace=GRACE + patience)
        self._stops = Check("shutdown", lambda: "the process is stopping" if self._stop.is_set() else None)

    @property
    def kubeconfig(self) -> Path:
        """The path of the administrator's kubeconfig; `announce` sets this attribute."""
        return self._front.kubeconfig

    def announce(self, *, claims: bool = True) -> None:
        """Write the administrator's kubeconfig for this server; if `claims` is set, hold a lock on the file."""
        self._front.announce(self.server.url, claims=claims)

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; raises the errors that the manager raises."""
        self._stop = stop
        try:
            self.manager.run(stop)
        except TimeoutError as error:
            raise CtrlmgrError(f"some components did not stop in time: {error}") from error
        finally:
            self._front.release()
