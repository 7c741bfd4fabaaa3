"""Tests that a webhook whose pods run on simulated nodes is not called, and that the writes
continue without the call.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.webhooks.hooked import WebhookCluster, deny

SERVICE = {"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}], "clusterIP": "None"}}


def slice_of(node: str, *, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": 9443}],
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": ready}, "nodeName": node}],
    }


def hooked(kind: str, node: str, *, ready: bool = True, **hook: Any) -> WebhookCluster:
    """Return a cluster whose webhook denies every write."""
    found = WebhookCluster(hook=deny(message="no"))
    for name, labels in (("simulated", {"simulate.ctrlmgr.io/node": "true"}), ("real", {})):
        assert found.stage.send("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}}).code == 201
    place = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
    assert found.stage.send("POST", "/api/v1/namespaces/shop/services", SERVICE).code == 201
    assert found.stage.send("POST", place, slice_of(node, ready=ready)).code == 201
    client = {"service": {"namespace": "shop", "name": "hooks", "path": "/hook"}}
    rules = [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"]}]
    hook = {"name": "hook.example.com", "clientConfig": client, "rules": rules, **hook}
    assert found.configure(kind, "one", hook).code == 201
    return found


@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_a_hook_on_simulated_nodes_is_not_called(kind: str) -> None:
    cluster = hooked(kind, "simulated")
    assert cluster.create("one").code == 201
    assert cluster.paths == []


@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_a_hook_on_other_nodes_is_called(kind: str) -> None:
    cluster = hooked(kind, "real")
    assert cluster.create("one").code == 400
    assert cluster.paths == ["hook"]


@pytest.mark.parametrize("kind", ["mutating", "validating"])
@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
def test_a_hook_whose_simulated_pods_are_not_ready_fails_by_its_policy(kind: str, policy: str, code: int) -> None:
    answer = hooked(kind, "simulated", ready=False, failurePolicy=policy).create("one")
    assert answer.code == code
    assert policy == "Ignore" or 'no endpoints available for service "hooks"' in answer.message
