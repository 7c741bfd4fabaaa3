"""Tests of kubectl with a played recording, and of `ctrlmgr play`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ctrlmgr.api.resource import PODS, SERVICES
from ctrlmgr.eventlog.event import EventType
from tests.e2e.kubectl import Kubectl, find_kubectl, lines
from tests.e2e.mock_cluster import MockCluster, changes, mock_cluster, versions
from tests.e2e.serving import DEADLINE
from tests.recording.samples import SMALL

MIDDLE = 399


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockCluster]:
    """A server with a paused recording; the test sets the position."""
    with mock_cluster(tmp_path_factory.mktemp("mock"), SMALL, "--paused", "--writes", "pretend") as server:
        yield server


@pytest.fixture
def kubectl(server: MockCluster, tmp_path: Path) -> Kubectl:
    server.command(f"seek?to={MIDDLE}")
    return Kubectl(find_kubectl(), server.kubeconfig, tmp_path)


def test_get_shows_recorded_objects(server: MockCluster, kubectl: Kubectl) -> None:
    template = "{range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{'\\n'}{end}"
    for place in (MIDDLE, 600, MIDDLE):
        server.command(f"seek?to={place}")
        told = kubectl(f'get pods -A -o jsonpath="{template}"')
        assert dict(line.split() for line in told.splitlines()) == versions(SMALL, PODS, place)


def test_ages_follow_the_recordings_time(server: MockCluster, kubectl: Kubectl) -> None:
    server.command("seek?to=end")
    age = kubectl("get namespace default --no-headers").split()[-1]
    assert re.fullmatch(r"\d+(s|m|m\d+s)", age), age  # it was recorded within minutes, and long ago


def test_get_watch_shows_recorded_changes(server: MockCluster, kubectl: Kubectl) -> None:
    later = [each for each in changes(SMALL) if each.object.resource == SERVICES and each.object.revision > MIDDLE]
    template = "{.type} {.object.metadata.resourceVersion}{'\\n'}"
    with kubectl.watching(f'get services -A --watch-only --output-watch-events -o jsonpath="{template}"') as process:
        server.command("seek?to=end")
        assert lines(process, len(later)) == [f"{each.type.name} {each.object.revision}" for each in later]
    assert {each.type for each in later} == set(EventType)


def test_a_watch_reports_a_rewind(server: MockCluster, kubectl: Kubectl) -> None:
    with kubectl.watching("get namespaces --watch-only --output-watch-events -o json") as process:
        server.command("seek?to=start")
        out, _ = process.communicate(timeout=DEADLINE)
    told = json.loads(out)
    assert (told["type"], told["object"]["reason"]) == ("ERROR", "Expired")


def test_writes_are_simulated_and_listed(server: MockCluster, kubectl: Kubectl) -> None:
    (name, *_) = sorted(each for each in versions(SMALL, SERVICES, MIDDLE) if not each.startswith("default/kubernetes"))
    namespace, _, service = name.partition("/")
    inside = kubectl.within(namespace)
    assert inside(f"label service {service} color=blue") == f"service/{service} labeled\n"
    assert inside("create configmap mine --from-literal=a=b") == "configmap/mine created\n"
    assert inside(f"delete service {service} --wait=false").startswith(f'service "{service}" deleted')
    assert "blue" not in inside(f"get service {service} --show-labels")
    assert "NotFound" in inside.fails("get configmap mine")
    found = json.loads(server.play("writes", "-o", "json"))
    assert [(each["verb"], each["resource"], each["name"]) for each in found] == [
        ("change", "services", service),
        ("create", "configmaps", "mine"),
        ("delete", "services", service),
        ("delete", "endpoints", service),
    ]
    assert [each["at"] for each in found] == [MIDDLE] * 4
    (_, create, *_) = yaml.safe_load_all(server.play("writes", "-o", "yaml"))
    assert create["object"]["data"] == {"a": "b"}
    header, *rows = server.play("writes").splitlines()
    assert header.split() == ["NUMBER", "TIME", "REVISION", "VERB", "OBJECT", "USER"]
    assert rows[1].split()[3:] == ["create", "configmaps", f"{namespace}/mine", "system:admin"]


def test_the_commands_control_the_playback(server: MockCluster, kubectl: Kubectl) -> None:
    assert server.play("status").startswith("paused: ")
    assert json.loads(server.play("step", "-o", "json"))["revision"] == 401  # the recording has no revision 400
    assert json.loads(server.play("step", "-1", "-o", "json"))["revision"] == MIDDLE
    before = json.loads(server.play("seek", "+10s", "-o", "json"))
    assert json.loads(server.play("seek", "-10s", "-o", "json"))["time"] < before["time"]
    assert json.loads(server.play("speed", "2.5", "-o", "json"))["speed"] == 2.5
    assert server.play("seek", "end").startswith("at its end: ")
    assert server.play("resume").startswith("at its end: ")
    assert server.play("pause").startswith("at its end: ")


def test_writes_are_refused_by_default(tmp_path: Path) -> None:
    with mock_cluster(tmp_path, SMALL, "--paused") as server:
        kubectl = Kubectl(find_kubectl(), server.kubeconfig, tmp_path)
        for command in ("create namespace mine", "label namespace default a=b", "delete namespace default"):
            complaint = kubectl.fails(command)
            assert "Forbidden" in complaint
            assert "this is a recording" in complaint
        assert "yes" in kubectl("auth can-i list pods")
        assert server.play("writes").split() == ["NUMBER", "TIME", "REVISION", "VERB", "OBJECT", "USER"]


def test_the_kubeconfig_of_a_real_server_is_kept(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("of somebody else")
    with mock_cluster(tmp_path, SMALL, "--paused"):
        assert (tmp_path / "kubeconfig").read_text() == "of somebody else"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kubeconfig", "play", "serve.log"]


def test_until_end_stops_after_the_last_event(tmp_path: Path) -> None:
    server = MockCluster(tmp_path, SMALL, "--speed", "1000000", "--until-end")
    try:
        server.start()
        assert server.wait() == 0, server.log
        assert "stopped" in server.log
    finally:
        server.close()
