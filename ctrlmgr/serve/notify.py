"""Notifies the service manager that started this process, with systemd's protocol over NOTIFY_SOCKET (sd_notify(3)).

Guarantees:
- The process sends READY when it is ready for the first time, and STOPPING when it begins to stop.
- If a watchdog is configured, the process notifies the watchdog twice per period while the process is alive. A process
  is alive if its event loop completes turns and its health checks pass.
- A process without a service manager sends no messages. If a notification fails, the process logs the failure and
  continues.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import structlog

log = structlog.get_logger(__name__)

_LOOK_AGAIN: Final = 0.1
"""The seconds between two checks whether the process is ready."""


class ServiceManager:
    """A Runnable that notifies the service manager that the process is ready and alive."""

    name = "service-manager"

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read the socket's address and the watchdog's period from the environment."""
        address = environment.get("NOTIFY_SOCKET", "")
        # In the address, "@" stands for the NUL byte at the beginning of an abstract address.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog = _watchdog(environment)
        """The watchdog's period in seconds; 0 if there is no watchdog."""
        self.is_ready: Callable[[], bool] = lambda: True
        self.is_alive: Callable[[], bool] = lambda: True

    @property
    def listens(self) -> bool:
        """Return whether this process has a service manager."""
        return bool(self._address)

    def run(self, stop: threading.Event) -> None:
        """Send READY when the process is ready, then notify the watchdog until `stop` is set."""
        while not self.is_ready():
            self._feed()
            if stop.wait(_LOOK_AGAIN):
                return
        self.send("READY=1")
        while not stop.wait(self.watchdog / 2 if self.watchdog else None):
            self._feed()

    def _feed(self) -> None:
        if self.watchdog and self.is_alive():
            self.send("WATCHDOG=1")

    def stopping(self) -> None:
        """Send the message STOPPING to the service manager."""
        self.send("STOPPING=1")

    def reloading(self, reload: Callable[[], None]) -> None:
        """Call `reload`, and send messages at its beginning and end (`Type=notify-reload`)."""
        self.send(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
        try:
            reload()
        finally:
            self.send("READY=1")

    def send(self, message: str) -> None:
        """Send a message to the service manager."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
                sending.sendto(message.encode(), self._address)
        except OSError as error:
            log.warning("notifying service manager failed", message=message, error=str(error))


def _watchdog(environment: Mapping[str, str]) -> float:
    """Return the watchdog's period in seconds; 0 if no watchdog watches this process."""
    period = environment.get("WATCHDOG_USEC", "")
    if not period.isdecimal() or environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    return int(period) / 1_000_000
