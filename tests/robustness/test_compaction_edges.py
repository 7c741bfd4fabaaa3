"""Tests of the compaction limit: watches and exact reads at revisions near the last compacted revision.

Two of the worst bugs in etcd (#18089, #19179) concerned the compaction limit: a deletion at the compacted revision, and
a watch that began one revision after it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.robustness.histories.history_cluster import revision_of
from tests.robustness.histories.run import RunSetup
from tests.robustness.histories.tail import Tail
from tests.robustness.hostile.raw import ask
from tests.robustness.serving import ConfiguredServer
from tests.robustness.wire import path_of

_MAPS = path_of("configmaps", "edges")


def write_some(served: ConfiguredServer) -> None:
    """Create a history of two objects with a deletion in its middle."""
    steps = [
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "edges"}}),
        ("POST", _MAPS, {"metadata": {"name": "gone"}}),
        ("PATCH", f"{_MAPS}/gone", {"data": {"a": "1"}}),
        ("DELETE", f"{_MAPS}/gone", None),
        ("POST", _MAPS, {"metadata": {"name": "here"}}),
        ("PATCH", f"{_MAPS}/here", {"data": {"a": "1"}}),
    ]
    for method, path, body in steps:
        code, answer = served.request(method, path, body)
        assert code < 300, answer


class CompactedRevisions:
    """The revision of the deletion, and the revisions of the events that follow."""

    def __init__(self, tail: Tail) -> None:
        tail.read()
        events = [event for event in tail.log if event.resource == "configmaps" and event.namespace == "edges"]
        self.floor = next(event.revision for event in events if event.type == "DELETED")
        self.after = [(event.type, event.revision) for event in events if event.revision > self.floor]

    def told_from(self, revision: int) -> list[tuple[str, int]]:
        return [event for event in self.after if event[1] > revision]


def watched(served: ConfiguredServer, *revisions: int) -> list[list[tuple[str, int]]]:
    """Return the events of watches that begin at these revisions; all watches run concurrently for a second."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda revision: watched_from(served, revision), revisions))


def watched_from(served: ConfiguredServer, revision: int) -> list[tuple[str, int]]:
    """Return the type and the revision of each event; for an error, return the status code instead."""
    query = {"watch": "true", "resourceVersion": str(revision), "timeoutSeconds": "1"}
    reply = ask(served.site, "GET", path_of("configmaps", "edges", "", query))
    assert reply.code == 200, reply
    events = map(json.loads, reply.body.splitlines())
    return [(event["type"], event["object"].get("code") or revision_of(event["object"])) for event in events]


@pytest.mark.slow
def test_history_begins_exactly_at_its_compaction(served: ConfiguredServer, setting: RunSetup, tmp_path: Path) -> None:
    write_some(served)
    tail = Tail(setting.database, tmp_path)
    story = CompactedRevisions(tail)
    tail.close()
    floor, head = story.floor, story.after[-1][1]
    assert [each[0] for each in watched_from(served, floor - 1)] == ["DELETED", "ADDED", "MODIFIED"]

    command = [sys.executable, "-m", "ctrlmgr", "compact", "--before", str(floor), "--database", setting.database]
    subprocess.run([*command, "--data-dir", str(served.folder)], check=True, capture_output=True)
    for restarted in (False, True):  # with the events still in memory, and without
        if restarted:
            served.stop()
            served.start()
        assert watched(served, 1, floor - 1) == [[("ERROR", 410)], [("ERROR", 410)]], restarted
        beginnings = (floor, floor + 1, head, head + 1)
        assert watched(served, *beginnings) == [story.told_from(each) for each in beginnings], restarted
        exact = {"resourceVersionMatch": "Exact"}
        for revision, code in ((floor - 1, 410), (floor, 200), (head, 200)):
            query = {"resourceVersion": str(revision), **exact}
            assert served.request("GET", path_of("configmaps", "edges", "", query))[0] == code, (restarted, revision)
    served.stop()
