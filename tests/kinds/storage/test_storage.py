"""Tests of the kinds of `storage.k8s.io`: defaults, warnings, and generations; `refusals` contains the tests of refused
objects.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.engine.features import gates
from tests.engine.stage import Stage as Engine
from tests.kinds.stage import staged

STORAGE = "storage.k8s.io/v1"
DEFAULTS = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "volumeLifecycleModes": ["Persistent"],
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}
TOKENS = {"tokenRequests": [{"audience": "a"}]}
UNSET = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)
ATTACHMENT = {"spec": {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}}


def test_defaults_of_a_csi_driver() -> None:
    drivers = staged(f"{STORAGE}/csidrivers")
    assert drivers.create({})["spec"] == DEFAULTS
    said = {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"], "fsGroupPolicy": "None"}
    assert drivers.create({"spec": said})["spec"] == {**DEFAULTS, **said}


def test_the_feature_gate_enables_preventing_scheduling(monkeypatch: pytest.MonkeyPatch) -> None:
    drivers, field = staged(f"{STORAGE}/csidrivers"), "preventPodSchedulingIfMissing"
    before = drivers.create({"spec": {field: True}})
    assert field not in before["spec"]
    monkeypatch.setitem(gates.ENABLED, "VolumeLimitScaling", True)
    assert drivers.create({})["spec"][field] is False
    assert "generation" not in drivers.update(before, {"metadata": {"labels": {"a": "b"}}})["metadata"]


def test_the_generation_of_a_driver_counts_from_a_missing_one() -> None:
    drivers = staged(f"{STORAGE}/csidrivers")
    made = drivers.create({})
    assert "generation" not in made["metadata"]
    labelled = drivers.update(made, {"metadata": {"labels": {"a": "b"}}})
    assert "generation" not in labelled["metadata"]
    changed = drivers.update(labelled, {"spec": {"storageCapacity": True}})
    assert changed["metadata"]["generation"] == 1
    assert drivers.update(changed, {"spec": {"storageCapacity": None}})["metadata"]["generation"] == 2


def test_a_driver_without_defaults_can_be_updated() -> None:
    drivers = staged(f"{STORAGE}/csidrivers")
    old: dict[str, Any] = {**drivers.create({}), "spec": {}}
    assert drivers.update(old, {"metadata": {"labels": {"a": "b"}}})["spec"] == DEFAULTS


def test_requested_tokens_in_attributes_cause_a_warning() -> None:
    drivers = staged(f"{STORAGE}/csidrivers")
    made = drivers.create({"spec": TOKENS})
    assert drivers.warnings == [UNSET]
    drivers.update(made, {"spec": {"storageCapacity": True}})
    assert drivers.warnings == []
    drivers.update(made, {"spec": {"tokenRequests": [{"audience": "b"}]}})
    assert drivers.warnings == [UNSET]
    drivers.create({"spec": {**TOKENS, "serviceAccountTokenInSecrets": False}})
    assert drivers.warnings == []


def test_deprecated_labels_of_nodes_cause_warnings() -> None:
    old = "beta.kubernetes.io/os"
    words = 'deprecated since v1.14; use "kubernetes.io/os" instead'
    capacities = staged(f"{STORAGE}/csistoragecapacities")
    selector = {"matchLabels": {old: "x"}, "matchExpressions": [{"key": old, "operator": "Exists"}]}
    capacities.create({"storageClassName": "c", "nodeTopology": selector})
    assert capacities.warnings == [
        f"nodeTopology.matchExpressions[0].key: {old} is {words}",
        f"nodeTopology.matchLabels.{old}: {words}",
    ]
    classes = staged(f"{STORAGE}/storageclasses")
    term = {"matchLabelExpressions": [{"key": "a", "values": ["b"]}, {"key": old, "values": ["x"]}]}
    classes.create({"provisioner": "p", "allowedTopologies": [term]})
    assert classes.warnings == [f"allowedTopologies[0].matchLabelExpressions[1].key: {words}"]


def test_an_inline_volume_is_defaulted() -> None:
    attachments = staged(f"{STORAGE}/volumeattachments")
    iscsi = {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 0}}
    source = {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"], **iscsi}}
    read = attachments.read({"spec": {**ATTACHMENT["spec"], "source": source}})
    assert read["spec"]["source"]["inlineVolumeSpec"]["iscsi"]["iscsiInterface"] == "default"


def test_the_error_of_an_attachment_has_a_length_limit() -> None:
    attachments = staged(f"{STORAGE}/volumeattachments")
    made = attachments.create({**ATTACHMENT, "status": {"attached": True}})
    assert "status" not in made or made["status"] == {"attached": False}
    status = {"attachmentMetadata": {"a": "b" * 256 * 1024}, "detachError": {"message": "x" * 1025}}
    assert attachments.update_refusal(made, {"status": {"attached": True, **status}}, "status") == [
        ("status.attachmentMetadata", "Too long: may not be more than 262144 bytes"),
        ("status.detachError.message", "Too long: may not be more than 262144 bytes"),
    ]


def test_an_empty_list_or_map_differs_from_a_missing_one() -> None:
    engine, nodes = Engine(), f"/apis/{STORAGE}/csinodes"
    node: dict[str, Any] = {"metadata": {"name": "n"}, "spec": {"drivers": [{"name": "d", "nodeID": "i"}]}}
    node["metadata"]["resourceVersion"] = engine.send("POST", nodes, node).body["metadata"]["resourceVersion"]
    told = []
    ways: list[dict[str, Any]] = [{"topologyKeys": []}, {}]
    for keys in ways:
        node["spec"]["drivers"] = [{"name": "d", "nodeID": "j", **keys}]
        told.append(engine.send("PUT", f"{nodes}/n", node).body["details"]["causes"][0]["message"])
    shown = 'Invalid value: {{"Name":"d","NodeID":"j","TopologyKeys":{},"Allocatable":null}}: field is immutable'
    assert told == [shown.format("[]"), shown.format("null")]
    spec = {"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, "capacity": {}}
    refused = engine.send("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec}).body
    assert refused["details"]["causes"][1]["message"] == 'Unsupported value: {}: supported values: "storage"'


@pytest.mark.parametrize(
    ("plural", "fields", "times"),
    [
        ("csidrivers", {"spec": {}}, 3),
        ("csinodes", {"spec": {"drivers": []}}, 3),
        ("volumeattachments", ATTACHMENT, 3),
        ("storageclasses", {"provisioner": "p"}, 4),
        ("volumeattributesclasses", {"driverName": "p", "parameters": {"a": "b"}}, 4),
    ],
)
def test_an_update_reports_errors_of_metadata_repeatedly(plural: str, fields: dict[str, Any], times: int) -> None:
    engine, path = Engine(), f"/apis/{STORAGE}/{plural}"
    made = engine.send("POST", path, {"metadata": {"name": "n"}, **fields}).body
    made["metadata"]["labels"] = {"a": "b c"}
    causes = engine.send("PUT", f"{path}/n", made).body["details"]["causes"]
    assert [each["field"] for each in causes] == ["metadata.labels"] * times


def test_replacing_a_driver_requires_the_current_version() -> None:
    engine = Engine()
    for plural, fields, code in (("csidrivers", {"spec": {}}, 422), ("storageclasses", {"provisioner": "p"}, 200)):
        path = f"/apis/{STORAGE}/{plural}"
        body = {"metadata": {"name": "n"}, **fields}
        assert engine.send("POST", path, body).code == 201
        assert engine.send("PUT", f"{path}/n", body).code == code
        assert engine.send("DELETE", f"{path}/n", {}).body["metadata"]["name"] == "n"
