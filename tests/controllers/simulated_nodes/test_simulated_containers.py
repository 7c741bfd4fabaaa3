"""Tests of simulated containers with unknown images or commands, and of files that containers share."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.simulated_nodes.shared_files import SharedFiles
from ctrlmgr.controllers.simulated_nodes.simulated_time import PodTime
from ctrlmgr.errors import SettingsError
from ctrlmgr.simulation.simulated_files import Entry
from tests.controllers.simulated_nodes.simulated_cluster import PLACE, SimulatedCluster

TOOL = {"image": "example.com/tool:1"}
"""A container with an unknown image and an unknown command."""


@pytest.mark.parametrize(
    ("spec", "container", "phase"),
    [
        pytest.param({}, {}, "Running", id="a server"),
        pytest.param({}, {"command": ["frobnicate"]}, "Running", id="a server by its command"),
        pytest.param({"restartPolicy": "Never"}, {}, "Succeeded", id="a task"),
        pytest.param({"restartPolicy": "OnFailure"}, {"args": ["--all"]}, "Succeeded", id="a task with arguments"),
        pytest.param({"restartPolicy": "Never"}, {"command": ["frobnicate"]}, "Succeeded", id="a task by its command"),
        pytest.param(
            {"restartPolicy": "Never"},
            {"command": ["sh", "-c", "wget https://example.com/x && unzip x; [ $? -eq 0 ] || exit 3"]},
            "Succeeded",
            id="a script of tools",
        ),
        pytest.param({"restartPolicy": "Never"}, {"image": "pause:3"}, "Running", id="a known server"),
        pytest.param({"restartPolicy": "Never"}, {"command": ["nginx"]}, "Running", id="a known command"),
        pytest.param({"initContainers": [{"name": "i", **TOOL}]}, {}, "Running", id="after an init container"),
        pytest.param(
            {"initContainers": [{"name": "i", "command": ["cp", "-n", "/bin/x", "/y"], **TOOL}]},
            {},
            "Running",
            id="after an init container that copies",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "restartPolicy": "Always", **TOOL}], "restartPolicy": "Never"},
            {},
            "Succeeded",
            id="beside a sidecar, which does not hold it up",
        ),
    ],
)
def test_an_unknown_image_terminates_as_configured(spec: dict[str, Any], container: dict[str, Any], phase: str) -> None:
    cluster = SimulatedCluster()
    cluster.pod("p", container={**TOOL, **container}, **spec)
    cluster.stage.pass_by(0.9)
    assert cluster.status("p")["phase"] in ("Pending", "Running")
    cluster.stage.pass_by(4)
    assert cluster.status("p")["phase"] == phase
    assert all(each["restartCount"] == 0 for each in cluster.status("p")["containerStatuses"])


def test_an_unknown_command_behaves_as_configured() -> None:
    cluster = SimulatedCluster(simulated_tasks="run", simulated_servers="exit 3 after 2s")
    cluster.pod("task", container=TOOL, restartPolicy="Never")
    cluster.pod("server", container=TOOL)
    cluster.pod("stopped", container=TOOL, annotations={"simulate.ctrlmgr.io/pod": "exit 4 after 1s"})
    cluster.stage.pass_by(30)
    assert cluster.status("task")["phase"] == "Running"
    codes = [
        cluster.status(name)["containerStatuses"][0]["lastState"]["terminated"]["exitCode"]
        for name in ("server", "stopped")
    ]
    assert codes == [3, 4]


@pytest.mark.parametrize("name", ["simulated_tasks", "simulated_servers"])
@pytest.mark.parametrize("phrase", ["never ready", "exit 0 after 1s; never ready", "dance", "fail 2 times"])
def test_settings_for_unknown_commands_are_endings(name: str, phrase: str) -> None:
    with pytest.raises(SettingsError, match=f"controllers.{name}: "):
        SimulatedCluster(**{name: phrase})


HOST = {"name": "v", "hostPath": {"path": "/data"}}
MOUNTED = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


def host_pod(cluster: SimulatedCluster, name: str, script: str, node: str = "node-1", policy: str = "Never") -> None:
    cluster.pod(name, script, node, container=MOUNTED, volumes=[HOST], restartPolicy=policy)


def test_pods_share_files_only_on_their_node() -> None:
    cluster = SimulatedCluster()
    host_pod(cluster, "waits", "until [ -f /v/go ]; do sleep 1; done; exit 0")
    host_pod(cluster, "elsewhere", "sleep 20; [ -f /v/go ]", node="node-2")
    cluster.stage.pass_by(5)
    assert cluster.status("waits")["phase"] == "Running"
    host_pod(cluster, "writes", "sleep 3; touch /v/go; sleep 1")
    cluster.stage.pass_by(10)
    assert [cluster.status(name)["phase"] for name in ("waits", "writes")] == ["Succeeded", "Succeeded"]
    cluster.stage.delete(f"{PLACE}/writes")
    host_pod(cluster, "later", "[ -f /v/go ]")
    cluster.stage.pass_by(20)
    assert cluster.status("later")["phase"] == "Succeeded"
    assert cluster.status("elsewhere")["phase"] == "Failed"


def test_files_of_a_node_are_recomputed_after_a_restart() -> None:
    cluster = SimulatedCluster()
    host_pod(cluster, "writes", "touch /v/go; sleep 1000", policy="Always")
    host_pod(cluster, "reads", "sleep 3; [ -f /v/go ] && sleep 1000; exit 3", policy="Always")
    cluster.stage.pass_by(10)
    before = cluster.status("reads")
    assert "running" in before["containerStatuses"][0]["state"]
    cluster.stage.start()
    cluster.stage.work()
    cluster.stage.pass_by(10)
    assert cluster.status("reads") == before
    host_pod(cluster, "later", "[ -f /v/go ]")
    cluster.stage.pass_by(5)
    assert cluster.status("later")["phase"] == "Succeeded"


def test_later_knowledge_does_not_change_past_results() -> None:
    files, time = SharedFiles(), PodTime(0, 1.0)
    second = 1_000_000
    assert [*files.seen_by("reader", time, 10 * second).of("node/n")] == []
    files.note(
        "writer", time, 11 * second, [("node/n", "f", Entry(9, "c", "x")), ("node/n", "g", Entry(10.5, "c", ""))]
    )
    files.note(
        "writer", time, 12 * second, [("node/n", "f", Entry(9, "c", "x")), ("node/n", "h", Entry(99.0, "c", ""))]
    )
    assert [*files.seen_by("reader", time, 12 * second).of("node/n")] == [("f", 10.0, "x"), ("g", 10.5, "")]
    assert [*files.seen_by("writer", time, 12 * second).of("node/n")] == []
    files.drop("node/n")
    assert [*files.seen_by("reader", time, 12 * second).of("node/n")] == []
