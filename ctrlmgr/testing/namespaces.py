"""Provides a namespace for one test on a shared server, and a kubeconfig with that namespace as the default."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import yaml

if TYPE_CHECKING:
    from ctrlmgr.testing.served import ServerProcess

_PATH = "/api/v1/namespaces"
_PATIENCE = 30.0


class OwnNamespace:
    """A namespace with a generated name; a context manager that creates and deletes it."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        """Prepare a namespace on the server `server`, with a kubeconfig in `folder`."""
        self.server = server
        self.name = ""
        self.kubeconfig = folder / "kubeconfig"
        """The path of an administrator's kubeconfig whose default namespace is this namespace."""

    def __enter__(self) -> OwnNamespace:
        made = self._request("POST", _PATH, {"metadata": {"generateName": "test-"}})
        self.name = made["metadata"]["name"]
        config = yaml.safe_load(self.server.kubeconfig.read_text(encoding="utf-8"))
        config["contexts"][0]["context"]["namespace"] = self.name
        self.kubeconfig.touch(mode=0o600)
        # The kubeconfig is written as JSON, because JSON is YAML too.
        self.kubeconfig.write_text(json.dumps(config), encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.server.exit_code is None:
            self._request("DELETE", f"{_PATH}/{self.name}")

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = Request(f"{self.server.url}{path}", data, headers, method=method)
        with urlopen(request, timeout=_PATIENCE, context=self.server.trust) as answer:
            return json.load(answer)
