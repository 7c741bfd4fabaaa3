from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.simulation.node_devices import read_devices, slices
from ctrlmgr.simulation.nodes import templates


def test_devices_are_read_with_plain_values() -> None:
    given = {
        "name": "gpu",
        "count": 2,
        "attributes": {"model": "h100", "numa": 1, "ecc": True},
        "capacity": {"m": "8Gi"},
    }
    attributes = {"model": {"string": "h100"}, "numa": {"int": 1}, "ecc": {"bool": True}}
    expected = {"attributes": attributes, "capacity": {"m": {"value": "8Gi"}}}
    assert read_devices({"gpu.example.com": [given]}) == {
        "gpu.example.com": [{**expected, "name": "gpu-0"}, {**expected, "name": "gpu-1"}]
    }


def test_attributes_and_capacities_can_be_written_like_in_a_slice() -> None:
    given = {"name": "gpu", "attributes": {"v": {"version": "1.2.3"}}, "capacity": {"m": {"value": "8Gi"}}}
    assert read_devices({"d": [given]}) == {"d": [given]}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "`devices` is a table of drivers"),
        ({"d": {"name": "gpu"}}, "d: a list of devices is expected, each with a `name`"),
        ({"d": [{"count": 2}]}, "d: a list of devices is expected, each with a `name`"),
        ({"d": [{"name": "gpu", "count": 0}]}, "`count` is a whole number of at least 1"),
        ({"d": [{"name": "gpu", "attributes": 7}]}, "`attributes` is a table of names and values"),
        ({"d": [{"name": "gpu"}, {"name": "gpu"}]}, "d: two devices have the same name"),
        ({"d": [{"name": "gpu", "count": 129}]}, "d: a node has at most 128 devices of a driver"),
        ({"d": [{"name": "GPU"}]}, "a lowercase RFC 1123 label must consist of"),
        ({"d_": [{"name": "gpu"}]}, "d_: "),
    ],
)
def test_an_error_names_the_driver(given: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_devices(given)


def test_a_file_of_nodes_has_devices_and_their_errors_have_lines(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text("- name: a\n  devices:\n    d: [{name: gpu}]\n- name: b\n")
    assert [each.devices for each in templates(str(path))] == [{"d": [{"name": "gpu"}]}, {}]
    path.write_text("- name: a\n  devices: {d: [{}]}\n")
    with pytest.raises(SettingsError, match=r"nodes\.yaml:2: d: a list of devices"):
        templates(str(path))


def test_a_node_publishes_one_slice_per_driver() -> None:
    (found,) = slices("n", "u", {"d": [{"name": "gpu"}]})
    assert found["metadata"]["name"] == "n-d"
    assert found["metadata"]["ownerReferences"][0]["uid"] == "u"
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    assert found["spec"] == {"driver": "d", "nodeName": "n", "pool": pool, "devices": [{"name": "gpu"}]}
