"""What the service manager that started this process is told: systemd's protocol over NOTIFY_SOCKET (sd_notify(3)).

Guarantees:
- READY comes when the process is ready for the first time, not when it was started; STOPPING as soon as it begins to
  stop.
- Where a watchdog was asked for it is fed while the process is alive, twice in each of its periods, and not when it
  only looks so: its event loop must turn and its health checks hold.
- Without a service manager nothing happens; one that does not listen is passed over.
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
"""Seconds between looks whether the process is ready."""


class ServiceManager:
    """What started this process; a Runnable, which tells it that the process is ready and that it lives."""

    name = "service-manager"

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read where it listens, and for what."""
        address = environment.get("NOTIFY_SOCKET", "")
        # "@" stands for the NUL that an abstract address begins with.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog = _watchdog(environment)
        """Within how many seconds it wants to hear that the process lives, 0 if it does not."""
        self.is_ready: Callable[[], bool] = lambda: True
        self.is_alive: Callable[[], bool] = lambda: True

    @property
    def listens(self) -> bool:
        """Whether there is one that wants to be told."""
        return bool(self._address)

    def run(self, stop: threading.Event) -> None:
        """Tell it of being ready, then of being alive, until `stop` is set."""
        while not self.is_ready():
            self._feed()
            if stop.wait(_LOOK_AGAIN):
                return
        self.tell("READY=1")
        while not stop.wait(self.watchdog / 2 if self.watchdog else None):
            self._feed()

    def _feed(self) -> None:
        if self.watchdog and self.is_alive():
            self.tell("WATCHDOG=1")

    def stopping(self) -> None:
        """Tell it that the process has begun to stop."""
        self.tell("STOPPING=1")

    def reloading(self, reload: Callable[[], None]) -> None:
        """Call `reload`, and tell it when that begins and ends (`Type=notify-reload`)."""
        self.tell(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
        try:
            reload()
        finally:
            self.tell("READY=1")

    def tell(self, message: str) -> None:
        """Send a message."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
                sending.sendto(message.encode(), self._address)
        except OSError as error:
            log.warning("the service manager cannot be told", message=message, error=str(error))


def _watchdog(environment: Mapping[str, str]) -> float:
    """Return the watchdog's period in seconds, 0 for none; one meant for another process is none."""
    period = environment.get("WATCHDOG_USEC", "")
    if not period.isdecimal() or environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    return int(period) / 1_000_000
