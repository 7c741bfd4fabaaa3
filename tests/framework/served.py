"""A cluster behind HTTPS, for the scenario of the example operator."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from ctrlmgr.testing.served import ServerProcess

DEADLINE = 30.0


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for another process by polling."""
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


PLURALS = {"v1/ConfigMap": "/api/v1/namespaces/default/configmaps"}
PLURALS |= {"example.com/v1/Shop": "/apis/example.com/v1/namespaces/default/shops"}


class HttpsCluster:
    """A cluster behind HTTPS."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server

    def ask(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": media_type}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.server.url}{path}", data, headers, method=method)
        with urlopen(request, timeout=30, context=self.server.trust) as answer:
            return json.load(answer)

    def create(self, obj: Mapping[str, Any]) -> None:
        path = PLURALS[f"{obj['apiVersion']}/{obj['kind']}"]
        wait_until(lambda: self.is_served(path))
        self.ask("POST", path, obj)

    def is_served(self, path: str) -> bool:
        try:
            self.ask("GET", path)
        except HTTPError:
            return False
        return True

    def patch(self, kind: str, name: str, patch: Mapping[str, Any]) -> None:
        self.ask("PATCH", f"{PLURALS[kind]}/{name}", patch, "application/merge-patch+json")

    def delete(self, kind: str, name: str) -> None:
        self.ask("DELETE", f"{PLURALS[kind]}/{name}")

    def get(self, kind: str, name: str) -> Any:
        try:
            return self.ask("GET", f"{PLURALS[kind]}/{name}")
        except HTTPError as error:
            if error.code == 404:
                return None
            raise

    def refusal(self, obj: Mapping[str, Any]) -> str:
        with pytest.raises(HTTPError) as refused:
            self.create(obj)
        return str(json.load(refused.value)["message"])

    def eventually(self, holds: Callable[[], bool]) -> None:
        wait_until(holds)
