"""Creates and deletes clusters on a server that runs with `serve --clusters`, for tests that need a cluster each."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import yaml

from ctrlmgr.errors import CtrlmgrError

if TYPE_CHECKING:
    from ctrlmgr.testing.served import ServerProcess

_PATIENCE = 60.0


class RequestRefused(CtrlmgrError):
    """The server refused a request."""

    default_message = "The server refused a request."

    def __init__(self, code: int, body: str) -> None:
        """Create an error for a response with the status `code`."""
        super().__init__(f"{code}: {body.strip()}")
        self.code = code


class HostedCluster(NamedTuple):
    """A cluster of a `ClusterHost`."""

    host: ClusterHost
    name: str
    url: str
    """The URL of the cluster, which ends with the path `/clusters/NAME`."""
    token: str
    """The token of the administrator."""
    kubeconfig: Path
    """The path of the administrator's kubeconfig, for kubectl and clients."""

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to a URL path of the cluster; return the decoded response, or raise `RequestRefused`."""
        return self.host.request(method, f"/clusters/{self.name}{path}", body, token=self.token)


class ClusterHost:
    """A server that serves many clusters."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        """Use a running `server`; kubeconfigs of clusters are written into `folder`."""
        self.server = server
        self._folder = folder
        self._token = server.token
        self._trust = server.trust
        self._numbers = itertools.count(1)

    def create(self, name: str = "") -> HostedCluster:
        """Create an empty cluster, by default with a new name; return it when it is ready."""
        return self._made({"name": name or self._new_name()})

    def fork(self, source: str, name: str = "", *, at: str = "") -> HostedCluster:
        """Create a cluster with the history of the cluster `source`, up to the revision or time `at` if it is given."""
        return self._made({"name": name or self._new_name(), "from": source, "at": at})

    def delete(self, name: str) -> None:
        """Delete a cluster."""
        self.request("DELETE", f"/clusters/{name}")

    def names(self) -> list[str]:
        """Return the names of all clusters."""
        return [each["name"] for each in self.request("GET", "/clusters")["clusters"]]

    @contextmanager
    def cluster(self, name: str = "") -> Iterator[HostedCluster]:
        """Create an empty cluster, and delete it after the block."""
        made = self.create(name)
        try:
            yield made
        finally:
            if self.server.exit_code is None:
                self.delete(made.name)

    def request(self, method: str, path: str, body: Any = None, *, token: str = "") -> Any:
        """Send a request; return the decoded response, or raise `RequestRefused`."""
        headers = {"Authorization": f"Bearer {token or self._token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = Request(f"{self.server.url}{path}", data, headers, method=method)
        try:
            with urlopen(request, timeout=_PATIENCE, context=self._trust) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                raise RequestRefused(error.code, error.read().decode("utf-8", "replace")) from error

    def _new_name(self) -> str:
        return f"test-{next(self._numbers)}"

    def _made(self, body: dict[str, str]) -> HostedCluster:
        made = self.request("POST", "/clusters", body)
        file = self._folder / f"{made['name']}.kubeconfig"
        file.touch(mode=0o600)
        file.write_text(made["kubeconfig"], encoding="utf-8")
        token = yaml.safe_load(made["kubeconfig"])["users"][0]["user"]["token"]
        return HostedCluster(self, made["name"], made["server"], token, file)
