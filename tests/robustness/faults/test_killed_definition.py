"""Tests of a server that is killed during the deletion of a CustomResourceDefinition: afterwards, neither the
definition nor its objects exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.e2e.serving import Server, until
from tests.e2e.widgets import DEFINITIONS, definition
from tests.robustness.faults.killed_definition import (
    COUNT,
    GROUP,
    LONGEST,
    WHERE,
    WIDGETS,
    after,
    assert_deleted_despite_kill,
    at_step,
    is_established,
)
from tests.robustness.faults.stage import sqlite_url

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return sqlite_url(tmp_path)


@pytest.fixture
def server(url: str, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, "--database", url)
    try:
        server.start()
        yield server
    finally:
        server.close()


def test_a_killed_deletion_leaves_nothing(server: Server, url: str) -> None:
    waits = [at_step(COUNT // 2)]
    if url.startswith("sqlite"):
        waits += [at_step(COUNT), at_step(0), after(Random(1).uniform(0, LONGEST))]
    for wait in waits:
        assert_deleted_despite_kill(server, url, wait)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_instances_with_finalizers_are_deleted_after_a_kill(server: Server) -> None:
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
