from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.workloads.controller_ref_manager import decide_claims


def owner(*, going: bool = False) -> Object:
    metadata: dict[str, Any] = {"name": "web", "namespace": "ns", "uid": "mine"}
    if going:
        metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    return Object.from_dict({"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": metadata})


def pod(controller: str = "", *, label: str = "web", going: bool = False) -> Object:
    metadata: dict[str, Any] = {"name": "p", "namespace": "ns", "uid": "p", "labels": {"app": label}}
    if controller:
        reference = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": controller,
            "controller": True,
        }
        metadata["ownerReferences"] = [reference]
    if going:
        metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    return Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata})


@pytest.mark.parametrize(
    ("obj", "adopter", "outcome"),
    [
        (pod("mine"), owner(), "kept"),
        (pod("mine", going=True), owner(), "kept"),
        (pod("mine"), owner(going=True), "kept"),
        (pod("mine", label="db"), owner(), "released"),
        (pod("mine", label="db"), owner(going=True), "left"),
        (pod("other"), owner(), "left"),
        (pod("other", label="db"), owner(), "left"),
        (pod(), owner(), "adopted"),
        (pod(label="db"), owner(), "left"),
        (pod(going=True), owner(), "left"),
        (pod(), owner(going=True), "left"),
    ],
)
def test_effects_of_an_object(obj: Object, adopter: Object, outcome: str) -> None:
    claims = decide_claims(adopter, [obj], lambda each: each.labels["app"] == "web")
    found = {name: [*objects] for name, objects in claims._asdict().items() if objects}
    assert found == ({} if outcome == "left" else {outcome: [obj]})
