from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctrlmgr.scheduling.scheduling_view import VolumeView
from ctrlmgr.scheduling.volume_restrictions import disks_of, is_in_zones, zones_of

ZONE, FORMER = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
GCE, EBS = "gcePersistentDisk", "awsElasticBlockStore"


def clash(one: dict[str, Any], other: dict[str, Any]) -> bool:
    (first,), (second,) = (disks_of(msgspec.convert(each, VolumeView)) for each in (one, other))
    return first.clashes(second)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({GCE: {"pdName": "d"}}, {GCE: {"pdName": "d", "readOnly": True}}, True),
        ({GCE: {"pdName": "d"}}, {GCE: {"pdName": "e"}}, False),
        ({"iscsi": {"iqn": "i", "readOnly": True}}, {"iscsi": {"iqn": "i", "readOnly": True}}, False),
        ({EBS: {"volumeID": "v", "readOnly": True}}, {EBS: {"volumeID": "v", "readOnly": True}}, True),
        ({"rbd": {"monitors": ["a", "b"], "image": "i"}}, {"rbd": {"monitors": ["b"], "image": "i"}}, True),
        ({"rbd": {"monitors": ["a"], "image": "i"}}, {"rbd": {"monitors": ["b"], "image": "i"}}, False),
        ({"rbd": {"monitors": ["a"], "image": "i"}}, {"rbd": {"monitors": ["a"], "image": "j"}}, False),
        ({GCE: {"pdName": "d"}}, {"iscsi": {"iqn": "d"}}, False),
    ],
)
def test_two_pods_cannot_use_one_disk_on_a_node(one: dict[str, Any], other: dict[str, Any], expected: bool) -> None:
    assert clash(one, other) is clash(other, one) is expected


@pytest.mark.parametrize(
    ("volume", "node", "expected"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__b"}, {ZONE: "b"}, True),
        ({ZONE: "a"}, {}, True),
        ({ZONE: "a"}, {"topology.kubernetes.io/region": "r"}, False),
        ({FORMER: "a"}, {ZONE: "a"}, True),
        ({FORMER: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__"}, {ZONE: "b"}, True),
        ({"other": "a"}, {ZONE: "b"}, True),
    ],
)
def test_a_node_must_be_in_the_zone_of_the_volumes(
    volume: dict[str, str], node: dict[str, str], expected: bool
) -> None:
    assert is_in_zones(zones_of(volume), node) is expected
