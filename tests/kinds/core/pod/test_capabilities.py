"""Tests of the permission for privileged containers: one setting of the process applies to pods and pod templates."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.kinds.capabilities import CAPABILITIES
from tests.engine.stage import Stage

CONTAINER = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}
TEMPLATE = {
    "metadata": {"name": "t"},
    "template": {
        "spec": {
            "initContainers": [CONTAINER],
            "containers": [{"name": "d", "image": "i", "securityContext": {"privileged": False}}],
        }
    },
}


@pytest.mark.parametrize(
    ("plural", "body", "field"),
    [
        ("pods", POD, "spec.containers[0].securityContext.privileged"),
        ("podtemplates", TEMPLATE, "template.spec.initContainers[0].securityContext.privileged"),
    ],
)
def test_privileged_containers(plural: str, body: dict[str, Any], field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.namespace("shop")
    path = f"/api/v1/namespaces/shop/{plural}"
    with monkeypatch.context() as patched:
        patched.setattr(CAPABILITIES, "allow_privileged", False)
        refused = stage.send("POST", path, body)
    assert refused.code == 422
    assert refused.message.endswith(f" is invalid: {field}: Forbidden: disallowed by cluster policy")
    assert stage.send("POST", path, body).code == 201
