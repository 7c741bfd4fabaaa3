"""Tests of `ctrlmgr compact --api-only` on a running server, and of `ctrlmgr serve --etcd-compaction-interval`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ctrlmgr.testing.served import ServerProcess
from tests.cli.conftest import Run

MAPS = "/api/v1/namespaces/default/configmaps"
ATTEMPTS = 10_000


def ask(server: ServerProcess, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(f"{server.url}{path}", data, headers), timeout=30, context=server.trust) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def first_page(server: ServerProcess) -> str:
    for name in ("a", "b"):
        assert ask(server, MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})[0] == 201
    token: str = ask(server, f"{MAPS}?limit=1")[1]["metadata"]["continue"]
    return token


def test_a_running_server_compacts_its_api_at_once_and_keeps_its_log(run: Run, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'served.db'}"
    with ServerProcess(tmp_path, "--database", database) as server:
        token = first_page(server)
        assert ask(server, f"{MAPS}?limit=1&continue={token}")[0] == 200
        finished = run("compact", "--api-only", "--database", database)
        assert (finished.code, finished.err) == (0, "")
        assert "the log has kept all events" in finished.out
        code, status = ask(server, f"{MAPS}?limit=1&continue={token}")
        while code == 200:  # until the server has read the event
            code, status = ask(server, f"{MAPS}?limit=1&continue={token}")
        assert (code, status["reason"]) == (410, "Expired")
        assert ask(server, f"{MAPS}?limit=1&continue={status['metadata']['continue']}")[0] == 200
    told = run("history", "configmaps", "a", "--database", database)
    assert told.code == 0
    assert "ADDED" in told.out.upper(), told.out


def test_revisions_older_than_the_interval_are_gone(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--database", "memory:", "--etcd-compaction-interval", "500ms") as server:
        token = first_page(server)
        codes = (ask(server, f"{MAPS}?limit=1&continue={token}")[0] for _ in range(ATTEMPTS))
        assert next(code for code in codes if code != 200) == 410


def test_options_that_remove_events_are_refused_with_api(run: Run, database: str) -> None:
    refused = run("compact", "--api-only", "--before", "3", "--database", database)
    assert (refused.code, "--api-only removes nothing" in refused.err) == (2, True)
