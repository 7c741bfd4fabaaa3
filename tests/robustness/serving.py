"""Servers for robustness tests: the servers of `tests.e2e`, which here can also be paused and measured."""

from __future__ import annotations

import os
import signal
import ssl
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.e2e.serving import Server


class Site(NamedTuple):
    """The URL of a server, and credentials for the server."""

    host: str
    port: int
    token: str
    trust: ssl.SSLContext


class ConfiguredServer(Server):
    """A `ctrlmgr serve` process like `Server`; `settings` contains lines of the process's settings file."""

    def __init__(self, folder: Path, *arguments: str, settings: str = "") -> None:
        file = folder / "settings.toml"
        file.write_text(settings)
        super().__init__(folder, "--settings", str(file), *arguments)
        self.folder = folder

    @property
    def site(self) -> Site:
        place = urlsplit(self.url)
        return Site(place.hostname or "", place.port or 0, self.token, self._trust)

    @property
    def authority(self) -> Path:
        return self.folder / "pki" / "ca.crt"

    @property
    def pid(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    def resident(self) -> int:
        """Return the resident memory of the process in bytes (Linux)."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def pause(self, seconds: float) -> None:
        """Stop the process with SIGSTOP for a while."""
        os.kill(self.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.pid, signal.SIGCONT)
