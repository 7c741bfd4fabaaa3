from __future__ import annotations

import gc
from typing import Any

import pytest

from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.selinux_warning.controller import CONFLICTS, build
from ctrlmgr.controllers.selinux_warning.label_conflicts import Conflict, do_conflict
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

DRIVER = "disks.example.com"
DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
ENDING = "If both pods land on the same node, only one of them may access the volume."
A, B = {"level": "s0:c1,c2"}, {"level": "s0:c3,c4"}


@pytest.mark.parametrize(
    ("label", "other", "expected"),
    [
        ("u:r:t:s0:c1,c2", "u:r:t:s0:c1,c2", False),
        ("u:r:t:s0:c1,c2", ":::s0:c1,c2", False),
        ("u:r:t:s0:c1,c2", ":::s0:c98,c99", True),
        ("u:r:t:s0", "u:r:other:s0", True),
        (":::s0:c1,c2", "", True),
        ("", "", False),
    ],
)
def test_labels_conflict_if_a_part_that_both_have_or_the_level_differs(label: str, other: str, expected: bool) -> None:
    assert do_conflict(label, other) == do_conflict(other, label) == expected


def test_a_message_does_not_name_a_pod_in_another_namespace() -> None:
    recorded = Conflict("SELinuxLabel", Key("a", "one"), "x", Key("b", "secret"), "y").message
    rest = f"conflicts with another pod that uses the same volume as this pod with a different SELinuxLabel. {ENDING}"
    assert recorded == f'SELinuxLabel"x" {rest}'


class LabelledVolumeCluster:
    """A claim with a volume of a CSI driver; tests create pods that mount the volume."""

    def __init__(self, *, mounts: bool = True) -> None:
        gc.collect()  # The controllers of other tests have no series.
        self.stage = WorkedStage(self._build)
        self.stage.namespace("a")
        self.stage.create(DRIVERS, {"metadata": {"name": DRIVER}, "spec": {"seLinuxMount": mounts}})
        size = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        where = "/api/v1/namespaces/a/persistentvolumeclaims"
        claim = self.stage.create(where, {"metadata": {"name": "v"}, "spec": {**size, "volumeName": "v"}})
        reference = {"namespace": "a", "name": "v", "uid": claim["metadata"]["uid"]}
        source = {"csi": {"driver": DRIVER, "volumeHandle": "h"}, "claimRef": reference}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], **source}
        self.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
        self.stage.work()

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, NoOptions())

    def pod(self, name: str, *labels: dict[str, str], claim: str = "v", policy: str | None = None) -> None:
        """Create a pod with one container for each of the SELinux labels."""
        mount = {"name": "data", "mountPath": "/data"}
        containers = [
            {"name": f"c{at}", "image": "i", "volumeMounts": [mount], "securityContext": {"seLinuxOptions": each}}
            for at, each in enumerate(labels)
        ]
        context = {} if policy is None else {"securityContext": {"seLinuxChangePolicy": policy}}
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        spec = {"containers": containers, "volumes": volumes, **context}
        self.stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": name}, "spec": spec})
        self.stage.work()

    def events(self) -> list[tuple[str, str]]:
        return [(reason, message) for _, reason, message in self.context.recorded.events]

    def conflicts(self) -> list[tuple[str, ...]]:
        return sorted(CONFLICTS.read())


def uses(mine: str, other: str, theirs: str, name: str) -> str:
    rest = f'uses the same volume as this pod with {name} "{theirs}". {ENDING}'
    return f'{name} "{mine}" conflicts with pod {other} that {rest}'


def test_both_pods_with_conflicting_labels_get_an_event_until_one_terminates() -> None:
    cluster = LabelledVolumeCluster()
    cluster.pod("one", A)
    assert cluster.events() == []
    cluster.pod("two", B)
    one, two = ":::s0:c1,c2", ":::s0:c3,c4"
    assert cluster.events() == [
        ("SELinuxLabelConflict", uses(two, "one", one, "SELinuxLabel")),
        ("SELinuxLabelConflict", uses(one, "two", two, "SELinuxLabel")),
    ]
    assert cluster.conflicts() == [
        ("SELinuxLabel", "a", "one", one, "a", "two", two),
        ("SELinuxLabel", "a", "two", two, "a", "one", one),
    ]
    cluster.stage.patch("/api/v1/namespaces/a/pods/one/status", {"status": {"phase": "Succeeded"}})
    cluster.stage.work()
    assert cluster.conflicts() == []
    assert len(cluster.events()) == 2


def test_different_policies_conflict_as_well_as_their_labels() -> None:
    cluster = LabelledVolumeCluster()
    cluster.pod("one", A)
    cluster.pod("two", A, policy="Recursive")
    assert [reason for reason, _ in cluster.events()] == [
        *2 * ["SELinuxChangePolicyConflict"],
        *2 * ["SELinuxLabelConflict"],
    ]
    assert cluster.events()[0][1] == uses("Recursive", "one", "MountOption", "SELinuxChangePolicy")


def test_volumes_without_label_mounts_conflict_after_their_driver_supports_labels() -> None:
    cluster = LabelledVolumeCluster(mounts=False)
    cluster.pod("one", A)
    cluster.pod("two", B)
    assert cluster.events() == []
    cluster.stage.patch(f"{DRIVERS}/{DRIVER}", {"spec": {"seLinuxMount": True}})
    cluster.stage.work()
    assert cluster.conflicts()[-1][0] == "SELinuxLabel"


def test_a_volume_with_two_labels_in_one_pod_is_reported() -> None:
    cluster = LabelledVolumeCluster()
    cluster.pod("both", A, B)
    message = 'Volume "data" is mounted twice with different SELinux labels inside this pod'
    assert cluster.events() == [("MultipleSELinuxLabels", message)]


def test_a_pod_whose_claim_is_bound_later_is_checked_after_the_binding() -> None:
    cluster = LabelledVolumeCluster()
    cluster.pod("one", A)
    size = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    where = "/api/v1/namespaces/a/persistentvolumeclaims"
    cluster.pod("late", B, claim="w")
    claim = cluster.stage.create(where, {"metadata": {"name": "w"}, "spec": {**size, "volumeName": "w"}})
    assert cluster.events() == []
    reference = {"namespace": "a", "name": "w", "uid": claim["metadata"]["uid"]}
    source = {"csi": {"driver": DRIVER, "volumeHandle": "h"}, "claimRef": reference}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], **source}
    cluster.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": "w"}, "spec": spec})
    cluster.stage.work()
    assert len(cluster.events()) == 2


def test_a_restarted_controller_finds_the_conflicts_again() -> None:
    cluster = LabelledVolumeCluster()
    cluster.pod("one", A)
    cluster.pod("two", B)
    before = cluster.conflicts()
    cluster.stage.start()
    gc.collect()
    cluster.stage.work()
    assert cluster.conflicts() == before
