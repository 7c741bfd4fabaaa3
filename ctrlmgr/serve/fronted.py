"""What all processes that serve have in common: a front door, a server behind it, and a manager of what runs.

Guarantees: whatever is served, a process is told to stop in one way, and not to stop in time is an error of ours.
"""

from __future__ import annotations

import threading
from pathlib import Path

from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.manager import Manager
from ctrlmgr.serve.front import Front
from ctrlmgr.server import Check, HttpServer


class Fronted:
    """A process that serves, wired and not yet started; what it serves, `server`, is made by each kind of its own."""

    server: HttpServer

    def __init__(self, front: Front, *, clock: Clock) -> None:
        """Serve behind `front`; nothing is managed yet."""
        self._front = front
        self._stop = threading.Event()
        self.manager = Manager(clock=clock)
        self._stops = Check("shutdown", lambda: "the process is stopping" if self._stop.is_set() else None)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, once it is announced."""
        return self._front.kubeconfig

    def announce(self, *, claims: bool = True) -> None:
        """Write the kubeconfig for this server, and have it for ourselves if we claim it."""
        self._front.announce(self.server.url, claims=claims)

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; raises what the manager raises."""
        self._stop = stop
        try:
            self.manager.run(stop)
        except TimeoutError as error:
            raise CtrlmgrError(f"not everything stopped in time: {error}") from error
        finally:
            self._front.leave()
