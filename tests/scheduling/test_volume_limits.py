from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctrlmgr.scheduling.volume_limits import DiskSources, VolumeName, volume_name

ZONE = "topology.kubernetes.io/zone"
GCE = "pd.csi.storage.gke.io"


@pytest.mark.parametrize(
    ("source", "labels", "expected"),
    [
        ({"csi": {"driver": "d", "volumeHandle": "h"}}, {}, ("d", "h")),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, {}, ("ebs.csi.aws.com", "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}, {}, ("ebs.csi.aws.com", "vol-1")),
        ({"azureDisk": {"diskURI": "/d"}}, {}, ("disk.csi.azure.com", "/d")),
        ({"portworxVolume": {"volumeID": "p"}}, {}, ("pxd.portworx.com", "p")),
        ({"gcePersistentDisk": {"pdName": "d"}}, {}, (GCE, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d")),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "r-1-a"}, (GCE, "projects/UNSPECIFIED/zones/r-1-a/disks/d")),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "r-1-a__r-1-b"},
            (GCE, "projects/UNSPECIFIED/regions/r-1/disks/d"),
        ),
        ({"vsphereVolume": {"volumePath": "p"}}, {}, None),
    ],
)
def test_volumes_have_the_names_of_their_csi_drivers(
    source: dict[str, Any], labels: dict[str, str], expected: tuple[str, str] | None
) -> None:
    found = volume_name(msgspec.convert(source, DiskSources), labels)
    assert found == (VolumeName(*expected) if expected else None)
