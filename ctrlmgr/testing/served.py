"""Runs `ctrlmgr serve` in another process, for tests that use a control plane over HTTPS.

Guarantees: the server listens only on a free port of 127.0.0.1, and stores all data in the given folder. The server is
ready after `__enter__`, and has ended after `__exit__`.
"""

from __future__ import annotations

import base64
import os
import signal
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.request import Request, urlopen

import yaml

from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.errors import CtrlmgrError

DEADLINE = 60.0
"""The maximum number of seconds that a server may take until it is ready."""

_PAUSE = 0.05
_PATIENCE = 30.0


class NotServed(CtrlmgrError, RuntimeError):
    """The server did not become ready."""

    def __init__(self, happened: str, output: str, code: int) -> None:
        """Create an error that reports `what` happened, with the `output` of the process.

        `code` is the exit code, 1 if the process was killed.
        """
        super().__init__(f"{happened}:\n{output}")
        self.code = code
        self.output = output


_SOURCES: Final = Path(__file__).parents[2]
"""The directory of this package; a server with this working directory imports this version of the package."""


class ServerProcess:
    """A context manager that runs a control plane. If it is entered again, the server continues with its database."""

    def __init__(
        self,
        folder: Path,
        *flags: str,
        clock: Clock | None = None,
        program: str = "ctrlmgr",
        directory: Path | None = None,
        **environment: str,
    ) -> None:
        """Run `ctrlmgr serve` with `flags` and additional variables `environment`.

        Its certificates and kubeconfig are in `folder`. `program` is a Python module that is run instead of ctrlmgr;
        the module must run the same command after its own additions. `directory` is the working directory of the
        process, by default `folder`.
        """
        self.kubeconfig = folder / "kubeconfig"
        """The path of the administrator's kubeconfig, for kubectl and clients."""
        self._folder = folder
        self._flags = flags
        self._environment = environment
        self._program = program
        self._directory = directory or folder
        self._clock = clock or SystemClock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of the server."""
        return str(self._cluster["server"])

    @property
    def token(self) -> str:
        """The token of the administrator."""
        return str(self._config["users"][0]["user"]["token"])

    @property
    def trust(self) -> ssl.SSLContext:
        """The TLS context that trusts the server's authority."""
        authority = base64.b64decode(self._cluster["certificate-authority-data"]).decode()
        return ssl.create_default_context(cadata=authority)

    @property
    def output(self) -> str:
        """The output of the process, including its log."""
        return self._output.read_text(encoding="utf-8", errors="replace")

    @property
    def exit_code(self) -> int | None:
        """The exit code of a server that has exited unexpectedly; None while it runs, and after `stop()`."""
        return self._process.poll() if self._process else None

    @property
    def _output(self) -> Path:
        return self._folder / "output.log"

    @property
    def _config(self) -> dict[str, Any]:
        config: dict[str, Any] = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))
        return config

    @property
    def _cluster(self) -> dict[str, Any]:
        cluster: dict[str, Any] = self._config["clusters"][0]["cluster"]
        return cluster

    def __enter__(self) -> ServerProcess:
        # The old kubeconfig is removed before the start. Therefore, if the file exists later, the started process has
        # written the file.
        self.kubeconfig.unlink(missing_ok=True)
        command = [
            sys.executable,
            *self._safely(),
            "-m",
            self._program,
            "serve",
            "--listen",
            "127.0.0.1:0",
            *self._flags,
        ]
        environment = {**os.environ, "CTRLMGR_DATA_DIR": str(self._folder), **self._environment}
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=self._directory,
                # Ctrl-C in a terminal must not end the server while the tests or the command still use the server.
                start_new_session=True,
            )
        try:
            self._await()
        except BaseException:
            self._process.kill()
            self.stop()
            raise
        return self

    def _safely(self) -> list[str]:
        """Return the option that prevents an `operator.py` in the working directory from replacing Python's module."""
        return [] if self._directory.resolve() == _SOURCES else ["-P"]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Shut the server down, or kill it after a timeout; if the server is not running, do nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _await(self) -> None:
        """Wait until the server is ready.

        Raises `NotServed` if the server ends before it is ready, or is not ready after `DEADLINE`.
        """
        deadline = self._clock.monotonic() + DEADLINE
        pause = threading.Condition()
        while not self._is_ready():
            assert self._process is not None
            if self._process.poll() is not None:
                code = self._process.returncode
                raise NotServed(f"ctrlmgr serve ended with code {code}", self.output, code if code > 0 else 1)
            if self._clock.monotonic() > deadline:
                raise NotServed(f"ctrlmgr serve was not ready within {DEADLINE:.0f} seconds", self.output, 1)
            with pause:
                self._clock.wait(pause, _PAUSE)

    def _is_ready(self) -> bool:
        try:
            request = Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self.token}"})
            with urlopen(request, timeout=_PATIENCE, context=self.trust) as answer:
                return bool(answer.status == 200)
        except (OSError, TypeError, KeyError):  # The file is missing or incomplete, or the server is not ready yet.
            return False
