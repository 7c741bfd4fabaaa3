from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.controllers.simulated_nodes.published_slices import RESOURCE_SLICES
from tests.controllers.simulated_nodes.simulated_cluster import SimulatedCluster

SLICE = "/apis/resource.k8s.io/v1/resourceslices/node-1-d"
NODES = """
- name: node
  count: 2
  devices:
    d:
    - {name: gpu, count: 2, attributes: {model: h100}, taints: [{key: k, effect: None}]}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> SimulatedCluster:
    path = tmp_path / "nodes.yaml"
    path.write_text(NODES)
    return SimulatedCluster(nodes=str(path))


def devices(cluster: SimulatedCluster) -> list[dict[str, Any]]:
    answer = cluster.stage.send("GET", SLICE)
    assert answer.code == 200, answer.body
    found: list[dict[str, Any]] = answer.body["spec"]["devices"]
    return found


def test_nodes_publish_their_devices(cluster: SimulatedCluster) -> None:
    assert cluster.stage.names(RESOURCE_SLICES) == ["node-1-d", "node-2-d"]
    assert [each["name"] for each in devices(cluster)] == ["gpu-0", "gpu-1"]
    assert devices(cluster)[0]["attributes"] == {"model": {"string": "h100"}}


def test_a_correct_slice_is_not_written(cluster: SimulatedCluster) -> None:
    before = cluster.stage.send("GET", SLICE).body["metadata"]["resourceVersion"]
    cluster.stage.pass_by(600)
    assert cluster.stage.send("GET", SLICE).body["metadata"]["resourceVersion"] == before


def test_a_changed_slice_and_a_deleted_one_are_restored(cluster: SimulatedCluster) -> None:
    cluster.stage.patch(SLICE, {"spec": {"devices": []}})
    cluster.stage.work()
    assert len(devices(cluster)) == 2
    cluster.stage.delete(SLICE)
    cluster.stage.work()
    assert len(devices(cluster)) == 2
