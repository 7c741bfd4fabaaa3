"""Tests of similar status patches: a pod's status does not depend on earlier patches of other pods.

Each case patches four pods in one engine, and patches the same four pods in one engine each. The bytes that both ways
write to the log must be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.admission.plugin_registry import new_chain
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.engine.request_options import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from ctrlmgr.settings import AdmissionSettings
from ctrlmgr.testing.fake_clock import FakeClock
from tests.engine.stage import Stage, builtin_kinds

Fields = dict[str, Any]
PODS = 4
PLACE = "/api/v1/namespaces/shop/pods"


def staged() -> Stage:
    """Return a cluster with several pods of one template."""
    stage = Stage(admission=new_chain(builtin_kinds(), FakeClock(), AdmissionSettings(), AlwaysAllow()))
    stage.namespace("shop")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    assert stage.send("POST", "/api/v1/namespaces/shop/serviceaccounts", account).code == 201
    for number in range(PODS):
        metadata = {"name": f"web-{number}", "labels": {"app": "web"}}
        spec = {"nodeName": "node", "containers": [{"name": "c", "image": "i:1"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        assert stage.send("POST", PLACE, body).code == 201
    return stage


def patched(stage: Stage, number: int, status: Fields, media_type: str) -> bytes:
    """Patch the status of a pod, and return the bytes of the pod in the log."""
    path = f"{PLACE}/web-{number}/status"
    assert stage.send("PATCH", path, {"status": status}, media_type=media_type).code == 200
    return list(stage.log.scan())[-1].object.body


def waiting(number: int) -> Fields:
    """Return a status with the same message for all pods, and with another host address for the last pod."""
    condition = {"type": "Ready", "status": "False", "message": "waits for 10.1.1.1"}
    return {"hostIP": "10.1.1.2" if number == PODS - 1 else "10.1.1.1", "conditions": [condition]}


def running(number: int) -> Fields:
    """Return the status of a ready pod."""
    ip = f"10.0.{number}.{number + 1}"
    ready = {"type": "Ready", "status": "True"}
    return {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [ready]}


def families(number: int) -> Fields:
    """Return a status whose addresses have another order in managedFields."""
    ip = f"{9 + number % 3 * 100}.0.0.{number}"
    return {"podIP": ip, "podIPs": [{"ip": ip}, {"ip": "100::1"}]}


def prefixes(number: int) -> Fields:
    """Return a status in which one address is a prefix of the other address, except for the last pod."""
    ip = f"10.0.0.{number + 1}"
    other = "10.1.1.1" if number == PODS - 1 else f"{ip}0"
    return {"podIP": ip, "podIPs": [{"ip": ip}], "hostIP": other, "hostIPs": [{"ip": other}]}


def named(number: int) -> Fields:
    """Return a status whose message contains the pod's name; for the last pod, the message contains the name of another
    pod.
    """
    return {"phase": "Pending", "message": f"web-{number % (PODS - 1)} of web- waits"}


@pytest.mark.parametrize("media_type", [MERGE_PATCH, STRATEGIC_MERGE_PATCH])
@pytest.mark.parametrize("status", [waiting, running, families, prefixes, named])
def test_a_pod_status_equals_a_single_write(status: Callable[[int], Fields], media_type: str) -> None:
    together = staged()
    for number in range(PODS):
        found = patched(together, number, status(number), media_type)
        alone = patched(staged(), number, status(number), media_type)
        assert found == alone


def test_a_message_is_stored_as_sent() -> None:
    stage = staged()
    for number in range(PODS):
        assert b"waits for 10.1.1.1" in patched(stage, number, waiting(number), MERGE_PATCH)
