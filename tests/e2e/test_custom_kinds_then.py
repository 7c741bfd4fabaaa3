"""Tests of a custom kind that is defined, changed, deleted and defined again: its history is served, played, printed
and replayed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctrlmgr.api.resource import DEFINITIONS as DEFINITION_KIND
from ctrlmgr.api.resource import Resource
from ctrlmgr.recording.format import Change, RecordingReader
from tests.e2e.mock_cluster import MockCluster, mock_cluster
from tests.e2e.serving import DEADLINE, Server, until
from tests.e2e.widgets import DEFINITIONS, defined, definition, version

GROUP = "then.example.com"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
ESTABLISHED = f"{DEFINITIONS}/widgets.{GROUP}"
WIDGET = {"apiVersion": f"{GROUP}/v1", "kind": "Widget"}
SERVED = {"selector": {"app": "s"}, "ports": [{"port": 80}]}
CUSTOM = Resource(GROUP, "widgets")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class KindHistory(NamedTuple):
    """The log of the custom kind's history, its recordings, and the revision of each point in time."""

    folder: Path
    url: str
    exported: Path
    """The path of the recording that `ctrlmgr record` made of the log."""
    watched: Path
    """The path of the recording that `ctrlmgr record` made of the running cluster during the changes."""
    before: int
    first: int
    second: int
    gone: int
    again: int


SHOWN = {
    "before": None,
    "first": (["Name", "Size"], {"a": {"size": 1, "color": "red"}}),
    "second": (["Name", "Width"], {"a": {"width": 7, "color": "red"}}),
    "gone": None,
    "again": (["Name", "Size"], {"b": {"size": 2}}),
}
"""The columns and the specs of widgets at each point in time; None if the kind does not exist."""


def shown(server: Server) -> Any:
    """Return a server's widgets in the form of `SHOWN`."""
    code, listed = server.request("GET", WIDGETS)
    if code == 404:
        assert server.request("GET", f"/apis/{GROUP}")[0] == 404
        return None
    names = [each["name"] for each in server.request("GET", f"/apis/{GROUP}/v1")[1]["resources"]]
    assert "widgets" in names
    columns = server.request("GET", WIDGETS, accept=TABLE)[1]["columnDefinitions"]
    return [each["name"] for each in columns], {each["metadata"]["name"]: each["spec"] for each in listed["items"]}


def widen() -> dict[str, Any]:
    """Return the version of the CustomResourceDefinition whose objects have a width, by default 7, and no size."""
    wide = version("v1", "width")
    wide["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["width"]["default"] = 7
    wide["additionalPrinterColumns"][0]["name"] = "Width"
    return wide


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> KindHistory:
    folder = tmp_path_factory.mktemp("then")
    url, exported, watched = f"sqlite:///{folder / 'log.db'}", folder / "log.jsonl.gz", folder / "watched.jsonl"
    server = Server(folder, "--database", url, CTRLMGR_CONTROLLERS_NAMESPACE_DELETION_GRACE="0")
    with server.running():
        recorder = subprocess.Popen(
            ctrlmgr("record", "--kubeconfig", str(server.kubeconfig), "--resources", "*", "-o", str(watched)),
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until(lambda: recorder.poll() is not None or (watched.exists() and "kube-system" in watched.read_text()))
            moments = [*happen(server)]
            recorder.terminate()
            _, said = recorder.communicate(timeout=DEADLINE)
            assert (recorder.returncode, "may be missing" in said) == (0, False), said
        finally:
            recorder.kill()
            recorder.communicate()
    run("record", "--database", url, "-o", str(exported))
    return KindHistory(folder, url, exported, watched, *moments)


def happen(server: Server) -> Iterator[int]:
    """Make all changes of the history, and yield the revision of each point in time."""

    def made(name: str) -> Any:
        spec = {"color": "red"} if name == "a" else {"size": 2}
        return server.create(WIDGETS, WIDGET | {"metadata": {"name": name}, "spec": spec})

    def revision() -> int:
        marker = server.create("/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "moment-"}})
        return int(marker["metadata"]["resourceVersion"])

    server.create("/api/v1/namespaces", {"metadata": {"name": "passing"}})
    server.create("/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": SERVED})
    until(lambda: server.request("GET", "/api/v1/namespaces/default/endpoints/s")[0] == 200)
    yield revision()
    with defined(server, definition(GROUP)):
        made("a")
        server.create(WIDGETS.replace("default", "passing"), WIDGET | {"metadata": {"name": "c"}})
        yield revision()
        assert server.request("DELETE", "/api/v1/namespaces/passing")[0] == 200
        until(lambda: server.request("GET", "/api/v1/namespaces/passing")[0] == 404)
        assert server.request("PATCH", ESTABLISHED, {"spec": {"versions": [widen()]}})[0] == 200
        until(lambda: server.request("GET", f"{WIDGETS}/a")[1]["spec"].get("width") == 7)
        assert server.request("PATCH", f"{WIDGETS}/a", {"metadata": {"labels": {"x": "y"}}})[0] == 200
        yield revision()
    yield revision()
    server.create(DEFINITIONS, definition(GROUP))
    until(lambda: server.request("GET", WIDGETS)[0] == 200)
    made("b")
    yield revision()


def ctrlmgr(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ctrlmgr", *arguments]


def run(*arguments: str) -> str:
    """Run a command and return its output."""
    done = subprocess.run(ctrlmgr(*arguments), capture_output=True, text=True, check=False, timeout=2 * DEADLINE)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize("moment", ["first", "second", "gone"])
def test_the_past_is_served_with_the_schema_of_its_revision(story: KindHistory, moment: str, tmp_path: Path) -> None:
    at = str(getattr(story, moment))
    past = Server(tmp_path, "--database", story.url, "--at", at)
    past.kubeconfig = tmp_path / f"kubeconfig-at-{at}"
    with past.running():
        assert shown(past) == SHOWN[moment]


@pytest.fixture(scope="module")
def played(story: KindHistory) -> Iterator[MockCluster]:
    folder = story.folder / "played"
    folder.mkdir()
    with mock_cluster(folder, story.exported, "--paused") as server:
        yield server


@pytest.mark.parametrize("moment", ["first", "before", "second", "again", "gone"])
def test_a_recording_is_played_with_the_schema_of_its_revision(
    story: KindHistory, played: MockCluster, moment: str
) -> None:
    played.command(f"seek?to={getattr(story, moment)}")
    assert shown(played) == SHOWN[moment]


@pytest.mark.parametrize("moment", ["first", "second", "again"])
def test_get_prints_the_columns_of_the_schema_at_the_revision(story: KindHistory, moment: str) -> None:
    at = ("--database", story.url, "--at", str(getattr(story, moment)))
    columns, specs = SHOWN[moment] or ([], {})
    header = run("get", "wd", "-n", "default", *at).splitlines()[0].split()
    assert header[: len(columns)] == [each.upper() for each in columns]
    listed = json.loads(run("get", "widgets", "-n", "default", "-o", "json", *at))
    items = listed.get("items", [listed])
    assert {each["metadata"]["name"]: each["spec"] for each in items} == specs


def test_a_recording_follows_created_and_deleted_kinds(story: KindHistory) -> None:
    told = []
    for path in (story.exported, story.watched):
        changes = [each for each in RecordingReader(path) if isinstance(each, Change)]
        ours = [each for each in changes if each.object.resource in (CUSTOM, DEFINITION_KIND)]
        told.append([(each.type.name, each.object.key, each.object.revision) for each in ours])
    assert told[0] == told[1]
    assert [f"{type_} {key.name}" for type_, key, _ in told[0] if key.namespace] == [
        *("ADDED a", "ADDED c", "DELETED c", "MODIFIED a", "DELETED a", "ADDED b")
    ]


@pytest.mark.parametrize("which", ["exported", "watched"])
def test_two_replays_have_the_same_hash(story: KindHistory, which: str) -> None:
    reports = [json.loads(run("replay", str(getattr(story, which)), "-o", "json")) for _ in range(2)]
    assert reports[0]["divergences"] == reports[1]["divergences"] == []
    assert reports[0]["hash"] == reports[1]["hash"]
    assert reports[0]["writes"] > 0
