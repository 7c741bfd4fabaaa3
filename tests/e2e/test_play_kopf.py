"""Tests of a kopf operator with a played recording: the operator receives the changes, and its writes are accepted but
not stored.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.resource import SERVICES
from tests.e2e import recording_operator
from tests.e2e.mock_cluster import MockCluster, mock_cluster, versions
from tests.e2e.recording_operator import CONVERTS, MARK, STATE
from tests.e2e.serving import DEADLINE, until
from tests.recording.samples import LARGER, SMALL

MEDIUM = [path for path in LARGER if path.name.startswith("medium")]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Operator:
    """The running operator, whose state is read from the file that the operator writes."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "state.json"

    def _read(self) -> Any:
        return json.loads(self.file.read_text()) if self.file.exists() else {"known": {}, "indexed": []}

    @property
    def known(self) -> dict[str, str]:
        found: dict[str, str] = self._read()["known"]
        return found

    @property
    def indexed(self) -> list[str]:
        found: list[str] = self._read()["indexed"]
        return found


@contextmanager
def operator(server: MockCluster, **variables: str) -> Iterator[Operator]:
    """Run the operator within the block; it must shut down gracefully."""
    found, log = Operator(server.folder), server.folder / "operator.log"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--all-namespaces", recording_operator.__file__]
    ours = {"KUBECONFIG": str(server.kubeconfig), STATE: str(found.file)}
    environment = {**os.environ, **ours, **variables}
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=Path(__file__).parents[2]
        )
    try:
        yield found
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0, log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()
        process.wait(DEADLINE)


@pytest.mark.parametrize("recording", [SMALL, *MEDIUM], ids=lambda path: path.name)
def test_kopf_ends_in_the_recorded_state(recording: Path, tmp_path: Path) -> None:
    with (
        mock_cluster(tmp_path, recording, "--paused", "--speed", "100") as server,
        operator(server) as operating,
    ):
        until(lambda: server.watches("services"))
        server.command("resume")
        until(lambda: server.request("GET", "/play")[1]["ended"])
        until(lambda: operating.known == versions(recording, SERVICES))
        until(lambda: operating.indexed == sorted(operating.known))


def test_kopf_handles_recorded_changes_and_changes_nothing(tmp_path: Path) -> None:
    with mock_cluster(tmp_path, SMALL, "--paused", "--writes", "pretend") as server:
        server.command("seek?to=500")
        with operator(server, **{CONVERTS: "yes"}) as operating:
            expected = versions(SMALL, SERVICES, 500)
            until(lambda: marked(server) == set(expected))
            assert operating.known == expected
            server.command("seek?to=end")
            until(lambda: operating.known == versions(SMALL, SERVICES))
            until(lambda: marked(server) >= set(versions(SMALL, SERVICES)))
            said = [write for write in writes(server) if write["resource"] == "events"]
            assert {write["object"]["reason"] for write in said} == {"Converted"}
            items = server.request("GET", "/api/v1/services")[1]["items"]
            assert not any(MARK in each["metadata"].get("annotations", {}) for each in items)


def writes(server: MockCluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.request("GET", "/play/writes")[1]["writes"]
    return found


def marked(server: MockCluster) -> set[str]:
    """Return the Services that the operator would have marked."""
    changes = [write for write in writes(server) if write["resource"] == "services" and write["verb"] == "change"]
    with_mark = [write for write in changes if MARK in write["object"]["metadata"].get("annotations", {})]
    return {f"{write['namespace']}/{write['name']}" for write in with_mark}
