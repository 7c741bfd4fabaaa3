"""Runs a real `ctrlmgr serve` for tests: a process on a free port, with its own data directory."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.server.turns import long_turns

DEADLINE = 30.0
"""Maximum duration of a response of the process, in seconds of real time."""

DUAL_STACK = ("--service-cluster-ip-range", "10.96.0.0/16,fd00:10:96::/112")


class Server:
    """A `ctrlmgr serve` process; it may be stopped or killed, and started again on the same port."""

    module = "ctrlmgr"
    """The arguments of `ctrlmgr serve`; a test may insert further arguments."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        """Store the server's data in `folder`; `arguments` are further flags, and `variables` are further environment
        variables.
        """
        self.kubeconfig = folder / "kubeconfig"
        self._folder = folder
        self._arguments = arguments
        self._variables = variables
        self._listen = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the server, on its previous port if it had one, and wait until it is ready."""
        command = [sys.executable, "-m", self.module, "serve", "--listen", self._listen, *self._arguments]
        ours = {"CTRLMGR_DATA_DIR": str(self._folder), "PYTHONUNBUFFERED": "1"}
        variables = {**os.environ, **ours, **self._variables}
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=variables, cwd=Path(__file__).parents[2]
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), self.log
        self._read_kubeconfig()
        until(lambda: self.request("GET", "/readyz")[0] == 200)

    def _read_kubeconfig(self) -> None:
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self.url: str = cluster["server"]
        self._listen = urlsplit(self.url).netloc
        self.token: str = config["users"][0]["user"]["token"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._trust = ssl.create_default_context(cadata=authority)

    def stop(self) -> None:
        """Shut the server down gracefully."""
        code = self._end(signal.SIGTERM)
        assert code == 0, self.log
        assert long_turns(self.log) == []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the server within a block; it must log no errors, and must shut down gracefully."""
        try:
            self.start()
            yield
            self.stop()
            assert "Traceback" not in self.log, self.log
        finally:
            self.close()

    def kill(self) -> None:
        """Kill the process, as a crash would end it."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        process = self._process
        assert process is not None, "it does not run"
        self._process = None
        process.send_signal(number)
        process.communicate(timeout=DEADLINE)
        return process.returncode

    def close(self) -> None:
        """Make sure that the process does not run."""
        if self._process is not None:
            self.kill()

    @property
    def _log(self) -> Path:
        return self._folder / "serve.log"

    @property
    def log(self) -> str:
        """Its standard error."""
        return self._log.read_text()

    def create(self, path: str, fields: object) -> Any:
        """Create an object in a collection and return it."""
        code, answer = self.request("POST", path, fields)
        assert code == 201, answer
        return answer

    def new_namespace(self) -> str:
        """Create a namespace and return its name, after its default objects exist."""
        name: str = self.create("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})["metadata"]["name"]
        for path in ("configmaps/kube-root-ca.crt", "serviceaccounts/default"):
            until(lambda path=path: self.request("GET", f"/api/v1/namespaces/{name}/{path}")[0] == 200)
        return name

    def request(
        self, method: str, path: str, body: object = None, *, media_type: str = "", accept: str = ""
    ) -> tuple[int, Any]:
        """Send a request as the administrator; return the status code and the body, decoded if it is JSON.

        If `body` is a string, it is sent unchanged; any other body is sent as JSON. A patch is a merge patch unless
        `media_type` names another type.
        """
        connection = http.client.HTTPSConnection(urlsplit(self.url).netloc, timeout=DEADLINE, context=self._trust)
        types = {"PATCH": "application/merge-patch+json"}
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": media_type or types.get(method, "application/json"),
            "User-Agent": "tests",
            **({"Accept": accept} if accept else {}),
        }
        sent = body if isinstance(body, str | None) else json.dumps(body)
        try:
            connection.request(method, path, sent, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(text) if is_json else text


def until(claim: Any) -> None:
    """Wait for another process by polling, because that process cannot notify the test."""
    deadline = time.monotonic() + DEADLINE
    while not claim():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)
