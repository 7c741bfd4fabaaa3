"""Tests of `ctrlmgr run` with a server that refuses requests, loses objects, and drops responses and connections."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.testing.served import ServerProcess
from tests.framework.contract.proxy import ClientRequest, Fault, Proxy
from tests.framework.contract.running import FLAGS, RUNS, Workloads, access_to, running

APPS = ("deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions")
WATCHED = ("pods", "nodes", "persistentvolumeclaims", *(f"apps/v1/{each}" for each in APPS))
REFUSALS = [
    (400, "BadRequest"),
    (403, "Forbidden"),
    (405, "MethodNotAllowed"),
    (410, "Expired"),
    (422, "Invalid"),
    (500, "InternalError"),
    (503, "ServiceUnavailable"),
    (504, "Timeout"),
]

RBAC = {"apiGroup": "rbac.authorization.k8s.io"}
CONTROLLERS = (f"controller:{each}-controller" for each in ("deployment", "replicaset", "statefulset", "daemon-set"))
ROLES = (*CONTROLLERS, "kube-scheduler", "volume-scheduler")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server"), "--database", "memory:", *FLAGS) as running:
        yield running


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[Proxy]:
    with Proxy(server) as running:
        yield running


def rolls_out(server: ServerProcess) -> None:
    """Create, update and delete a Deployment."""
    cluster = Workloads(server)
    cluster.make("Deployment", replicas=2)
    cluster.deployment_is(2)
    cluster.roll("deployments", "nginx:2")
    cluster.deployment_is(2)
    assert cluster.images() == {"nginx:2"}
    cluster.remove("deployments")
    cluster.is_empty()


def assert_survives(server: ServerProcess, proxy: Proxy, *faults: Fault) -> None:
    """Check that the workloads converge although all these faults were injected."""
    proxy.add(*faults)
    with running(access_to(server, proxy.url), RUNS):
        rolls_out(server)
    assert proxy.is_through


def streams(resource: str) -> Fault:
    return Fault(lambda asked: asked.streams_list and asked.resource == resource)


def watches(resource: str) -> Fault:
    return Fault(lambda asked: asked.verb == "watch" and not asked.streams_list and asked.resource == resource)


def writes(asked: ClientRequest) -> bool:
    return asked.is_write


def test_lists_are_read_without_streaming_after_any_failure(server: ServerProcess, proxy: Proxy) -> None:
    pairs = zip(WATCHED, REFUSALS, strict=True)
    assert_survives(
        server, proxy, *(streams(each)._replace(code=code, reason=reason) for each, (code, reason) in pairs)
    )


def test_incomplete_streamed_lists_are_retried(server: ServerProcess, proxy: Proxy) -> None:
    assert_survives(server, proxy, *(streams(each)._replace(lines=0) for each in WATCHED))


def test_failing_lists_are_retried(server: ServerProcess, proxy: Proxy) -> None:
    refused = streams("pods")._replace(code=500, reason="InternalError")
    lists = Fault(lambda asked: asked.verb == "list" and asked.resource == "pods")
    assert_survives(server, proxy, refused, lists._replace(code=403, reason="Forbidden"), lists._replace(code=503))


def test_broken_watches_are_resumed(server: ServerProcess, proxy: Proxy) -> None:
    resources = ("pods", "apps/v1/replicasets")
    # A streamed list and the following watch are one request, so the first cut occurs in the list.
    first = [streams(each)._replace(lines=lines) for lines, each in enumerate(resources, 1)]
    assert_survives(server, proxy, *first, *(watches(each)._replace(lines=1) for each in resources))


@pytest.mark.parametrize(("code", "reason"), [(410, "Expired"), (429, "TooManyRequests"), (500, "InternalError")])
def test_watches_that_end_with_an_error_are_resumed(
    server: ServerProcess, proxy: Proxy, code: int, reason: str
) -> None:
    ends: dict[str, Any] = {"lines": 2, "code": code, "reason": reason}
    assert_survives(server, proxy, *(streams(each)._replace(**ends) for each in ("pods", "apps/v1/replicasets")))


@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (410, "Expired"), (503, ""), (504, "Timeout")])
def test_watches_that_cannot_be_resumed_cause_a_list(
    server: ServerProcess, proxy: Proxy, code: int, reason: str
) -> None:
    resources = ("pods", "apps/v1/replicasets")
    refused = [watches(each)._replace(code=code, reason=reason) for each in resources]
    assert_survives(server, proxy, *(streams(each)._replace(lines=2) for each in resources), *refused)


def test_refused_writes_are_retried(server: ServerProcess, proxy: Proxy) -> None:
    assert_survives(
        server,
        proxy,
        Fault(writes, 2, 429, "TooManyRequests", {"retry-after": "1"}),
        Fault(writes, 2, 500, "InternalError"),
        Fault(writes, 2, 503, "ServiceUnavailable"),
        Fault(writes, 2, 504, "Timeout"),
        Fault(lambda asked: asked.verb == "update", 2, 409, "Conflict"),
    )


def test_writes_with_lost_responses_are_retried(server: ServerProcess, proxy: Proxy) -> None:
    assert_survives(server, proxy, Fault(writes, 8, is_lost=True))


def test_the_rights_of_kube_controller_manager_suffice(server: ServerProcess, proxy: Proxy) -> None:
    cluster, name = Workloads(server), "system:serviceaccount:kube-system:runs"
    cluster.ask("POST", "/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": "runs"}})
    for each in ROLES:
        binding = {
            "metadata": {"name": f"runs:{each}"},
            "roleRef": {**RBAC, "kind": "ClusterRole", "name": f"system:{each}"},
            "subjects": [{**RBAC, "kind": "User", "name": name}],
        }
        cluster.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    path = "/api/v1/namespaces/kube-system/serviceaccounts/runs/token"
    token = cluster.ask("POST", path, {"spec": {}})["status"]["token"]
    with running(dataclasses.replace(access_to(server, proxy.url), user={"token": token}), RUNS):
        rolls_out(server)
        for kind, check in (("StatefulSet", cluster.stateful_set_is), ("DaemonSet", cluster.daemon_set_is)):
            cluster.make(kind, **({"replicas": 2} if kind == "StatefulSet" else {}))
            check(2)
            cluster.roll(f"{kind.lower()}s", "nginx:2")
            check(2)
            cluster.remove(f"{kind.lower()}s")
            cluster.is_empty()
    assert [asked for asked, code in proxy.answered if code == 403] == []
    assert "create events" in {f"{asked.verb} {asked.resource}" for asked, code in proxy.answered if code == 201}
