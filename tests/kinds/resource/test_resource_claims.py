"""Tests of ResourceClaims: defaults, and the status of claims."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.unstructured import Unstructured
from tests.kinds.stage import Stage, staged

ADMIN = {"resource.kubernetes.io/admin-access": "true"}
RESULT = {"request": "a", "driver": "d.x", "pool": "p", "device": "g"}


def namespace(labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}


def claims(labels: dict[str, str] | None = None) -> Stage:
    return staged("resource.k8s.io/v1/resourceclaims", namespace(labels or {}))


def spec(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "a", **each} for each in requests]}}


def created(on: Stage) -> Unstructured:
    return on.create({"spec": spec({"exactly": {"deviceClassName": "c"}})})


def allocated(**more: Any) -> dict[str, Any]:
    return {"status": {"allocation": {"devices": {"results": [{**RESULT, **more}]}}}}


@pytest.mark.parametrize(
    ("wanted", "mode", "count"),
    [({}, "ExactCount", 1), ({"count": 3}, "ExactCount", 3), ({"allocationMode": "All"}, "All", None)],
)
def test_a_request_defaults_to_one_device(wanted: dict[str, Any], mode: str, count: int | None) -> None:
    asked = {"deviceClassName": "c", **wanted}
    for request in ({"exactly": asked}, {"firstAvailable": [{"name": "x", **asked}]}):
        (found,) = claims().create({"spec": spec(request)})["spec"]["devices"]["requests"]
        chosen = found.get("exactly") or found["firstAvailable"][0]
        assert (chosen["allocationMode"], chosen.get("count")) == (mode, count)


def test_a_template_defaults_to_one_device() -> None:
    on = staged("resource.k8s.io/v1/resourceclaimtemplates")
    template = on.create({"spec": {"spec": spec({"exactly": {"deviceClassName": "c"}})}})
    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1


def test_admin_access_requires_an_admin_namespace() -> None:
    wanted = {"spec": spec({"exactly": {"deviceClassName": "c", "adminAccess": True}})}
    label = "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
    refused = f"Forbidden: admin access to devices requires the {label}"
    assert claims().refusal(wanted) == [("spec.devices.requests[0].adminAccess", refused)]
    assert claims(ADMIN).refusal(wanted) == []
    on = claims()
    path = "status.allocation.devices.results[0].adminAccess"
    assert on.update_refusal(created(on), allocated(adminAccess=True), "status") == [(path, refused)]


def test_device_statuses_are_removed_with_their_devices() -> None:
    on = claims()
    given = allocated()
    given["status"]["devices"] = [{"driver": "d.x", "pool": "p", "device": "g"}]
    claim = on.update(created(on), given, "status")
    assert claim["status"]["devices"]
    assert "devices" not in on.update(claim, {"status": {"allocation": None}}, "status")["status"]


def test_new_pods_cannot_use_a_terminating_claim() -> None:
    on = claims()
    claim = on.update(created(on), allocated(), "status")
    claim["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    consumer = {"resource": "pods", "name": "x", "uid": "u"}
    detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
    found = on.update_refusal(claim, {"status": {"reservedFor": [consumer]}}, "status")
    assert found == [("status.reservedFor", f"Forbidden: {detail}")]
