from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.controllers.simulated_nodes.published_slices import RESOURCE_SLICES
from tests.controllers.simulated_nodes.scene import Scene

SLICE = "/apis/resource.k8s.io/v1/resourceslices/node-1-d"
NODES = """
- name: node
  count: 2
  devices:
    d:
    - {name: gpu, count: 2, attributes: {model: h100}, taints: [{key: k, effect: None}]}
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    path = tmp_path / "nodes.yaml"
    path.write_text(NODES)
    return Scene(nodes=str(path))


def devices(scene: Scene) -> list[dict[str, Any]]:
    answer = scene.stage.send("GET", SLICE)
    assert answer.code == 200, answer.body
    found: list[dict[str, Any]] = answer.body["spec"]["devices"]
    return found


def test_nodes_publish_their_devices(scene: Scene) -> None:
    assert scene.stage.names(RESOURCE_SLICES) == ["node-1-d", "node-2-d"]
    assert [each["name"] for each in devices(scene)] == ["gpu-0", "gpu-1"]
    assert devices(scene)[0]["attributes"] == {"model": {"string": "h100"}}


def test_a_correct_slice_is_not_written(scene: Scene) -> None:
    before = scene.stage.send("GET", SLICE).body["metadata"]["resourceVersion"]
    scene.stage.pass_by(600)
    assert scene.stage.send("GET", SLICE).body["metadata"]["resourceVersion"] == before


def test_a_changed_slice_and_a_deleted_one_are_restored(scene: Scene) -> None:
    scene.stage.patch(SLICE, {"spec": {"devices": []}})
    scene.stage.work()
    assert len(devices(scene)) == 2
    scene.stage.delete(SLICE)
    scene.stage.work()
    assert len(devices(scene)) == 2
