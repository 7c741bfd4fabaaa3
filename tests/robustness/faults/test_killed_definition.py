"""A server that is killed while a definition goes: afterwards neither it nor any object of it is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.resource import DEFINITIONS as RESOURCE
from ctrlmgr.api.resource import Resource
from ctrlmgr.inspection import past
from ctrlmgr.inspection.database import open_database
from tests.e2e.serving import Server, until
from tests.e2e.widgets import DEFINITIONS, definition

GROUP = "killed.example.com"
WHERE = f"{DEFINITIONS}/widgets.{GROUP}"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
COUNT = 25


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'killed.db'}"


@pytest.fixture
def server(url: str, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, "--database", url)
    try:
        server.start()
        yield server
    finally:
        server.close()


def left(server: Server) -> int:
    """Return how many objects there are; none where they are not served."""
    code, listed = server.request("GET", WIDGETS)
    return len(listed["items"]) if code == 200 else 0


def is_established(server: Server) -> bool:
    conditions: list[dict[str, Any]] = server.request("GET", WHERE)[1].get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def test_nothing_is_left_wherever_it_was_killed(server: Server, url: str) -> None:
    for remaining in (COUNT, COUNT // 2, 0):
        server.create(DEFINITIONS, definition(GROUP))
        until(lambda: is_established(server))
        for index in range(COUNT):
            metadata = {"name": f"w{index}"}
            server.create(WIDGETS, {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": metadata})
        assert server.request("DELETE", WHERE)[0] == 200
        until(lambda most=remaining: left(server) <= most)
        server.kill()
        server.start()
        until(lambda: server.request("GET", WHERE)[0] == 404)
        until(lambda: server.request("GET", WIDGETS)[0] == 404)
        with open_database(url) as database:
            assert past.objects(database, Resource(GROUP, "widgets")) == []
            assert past.objects(database, RESOURCE, name=f"widgets.{GROUP}") == []


def test_what_something_holds_is_seen_off_after_a_kill_too(server: Server) -> None:
    server.create(DEFINITIONS, definition(GROUP))
    until(lambda: is_established(server))
    metadata = {"name": "held", "finalizers": ["example.com/hold"]}
    server.create(WIDGETS, {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": metadata})
    server.request("DELETE", WHERE)
    until(lambda: "deletionTimestamp" in server.request("GET", f"{WIDGETS}/held")[1]["metadata"])
    server.kill()
    server.start()
    new = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "new"}}
    until(lambda: server.request("GET", f"{WIDGETS}/held")[0] == 200)
    code, refused = server.request("POST", WIDGETS, new)
    assert (code, refused["reason"]) == (403, "Forbidden")
    server.request("PATCH", f"{WIDGETS}/held", {"metadata": {"finalizers": None}})
    until(lambda: server.request("GET", WHERE)[0] == 404)
