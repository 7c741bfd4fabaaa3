from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.ephemeral_volume import Options
from ctrlmgr.controllers.ephemeral_volume.controller import build as build_ephemeral
from ctrlmgr.controllers.persistentvolume_binder.controller import CLAIMS
from ctrlmgr.controllers.persistentvolume_expander.decide import Expansion, expansion
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

Thing = dict[str, Any]
OUTSIDE = Expansion("waiting for an external controller to expand this PVC")
EBS = Expansion(
    "CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to expand the pvc", "ebs.csi.aws.com"
)


def claim(asks: str, has: str, phase: str = "Bound") -> Thing:
    spec = {"resources": {"requests": {"storage": asks}}, "volumeName": "v"}
    return {"metadata": {"uid": "u"}, "spec": spec, "status": {"phase": phase, "capacity": {"storage": has}}}


def volume(source: str = "csi", uid: str = "u", annotations: Thing | None = None) -> Thing:
    return {"metadata": {"annotations": annotations}, "spec": {source: {}, "claimRef": {"uid": uid}}}


@pytest.mark.parametrize(
    ("asks", "has", "expected"),
    [
        (claim("2Gi", "1Gi"), volume(), OUTSIDE),
        (claim("2Gi", "1Gi"), volume("nfs"), OUTSIDE),
        (claim("2Gi", "1Gi"), volume("awsElasticBlockStore"), EBS),
        (claim("1Gi", "1Gi"), volume(), None),
        (claim("1Gi", "1Gi"), volume(annotations={"volume.alpha.kubernetes.io/pre-resize-capacity": "1Gi"}), OUTSIDE),
        (claim("2Gi", "1Gi", "Pending"), volume(), None),
        (claim("2Gi", "1Gi"), volume(uid="x"), None),
        (claim("2Gi", "1Gi"), None, None),
    ],
)
def test_the_expansion_of_a_claim_waits_for_its_driver(
    asks: Thing, has: Thing | None, expected: Expansion | None
) -> None:
    assert expansion(asks, has) == expected


def test_the_claims_of_ephemeral_volumes() -> None:
    contexts: list[StageContext] = []

    def make(stage: WorkedStage) -> Any:
        contexts.append(StageContext(stage))
        return build_ephemeral(contexts[-1], Options())

    stage = WorkedStage(make)
    stage.namespace("a")
    where = "/api/v1/namespaces/a/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "c"}
    stage.create(where, {"metadata": {"name": "p-first"}, "spec": spec})
    template = {"metadata": {"labels": {"l": "1"}, "annotations": {"n": "2"}}, "spec": spec}
    volumes = [{"name": each, "ephemeral": {"volumeClaimTemplate": template}} for each in ("first", "second")]
    containers = [{"name": "c", "image": "i"}]
    body = {"metadata": {"name": "p"}, "spec": {"containers": containers, "volumes": volumes}}
    stage.create("/api/v1/namespaces/a/pods", body)
    stage.work()
    assert stage.stored(CLAIMS, "p-second", "a") is None
    message = "ephemeral volume first: PVC a/p-first was not created for pod a/p (pod is not owner)"
    assert ("Warning", "FailedBinding", message) in contexts[-1].recorded.events
    stage.patch(f"{where}/p-first", {"metadata": {"finalizers": None}})
    stage.send("DELETE", f"{where}/p-first")
    stage.work()
    pod = stage.stored(PODS, "p", "a")
    assert pod is not None
    for name in ("p-first", "p-second"):
        made = stage.stored(CLAIMS, name, "a")
        assert made is not None
        owner = next(iter(made.metadata.owner_references or ()))
        assert (owner.uid, owner.controller, owner.block_owner_deletion) == (pod.uid, True, True)
        assert (made.labels, made.annotations["n"]) == ({"l": "1"}, "2")
