"""Tests of rows and columns in tables that Kubernetes 1.36.2 printed, and of the pod states in kubectl's output."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.engine.tables.ages import ages_at, human_duration
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.kinds.core.pod.pod_printer import PODS

NOW = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
KINDS = builtin_kinds()
CREATED = "2025-12-31T23:50:00Z"


def row(group: str, plural: str, **fields: Any) -> list[Any]:
    kind = KINDS.find(group, fields.pop("version", "v1"), plural)
    assert kind is not None
    metadata = {"name": "t", "namespace": "ns", "creationTimestamp": CREATED, **fields.pop("metadata", {})}
    obj = Object.from_dict({"apiVersion": kind.gvk.api_version, "kind": kind.name, "metadata": metadata, **fields})
    table = kind.printer
    cells = list(table.cells(obj, NOW))
    assert len(cells) == len(table.columns)
    return cells


def service(**spec: Any) -> list[Any]:
    status = spec.pop("status", {"loadBalancer": {}})
    return row("", "services", spec={"type": "ClusterIP", **spec}, status=status)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (
            service(clusterIP="10.0.0.1", ports=[{"port": 80, "protocol": "TCP"}], selector={"b": "2", "a": "1"}),
            ["t", "ClusterIP", "10.0.0.1", "<none>", "80/TCP", "10m", "a=1,b=2"],
        ),
        (
            service(type="ExternalName", externalName="x.example.com"),
            ["t", "ExternalName", "<none>", "x.example.com", "<none>", "10m", "<none>"],
        ),
        (
            service(
                type="LoadBalancer", clusterIP="10.0.0.1", ports=[{"port": 1, "nodePort": 30080, "protocol": "UDP"}]
            ),
            ["t", "LoadBalancer", "10.0.0.1", "<pending>", "1:30080/UDP", "10m", "<none>"],
        ),
        (
            service(
                type="LoadBalancer",
                clusterIP="10.0.0.1",
                externalIPs=["192.0.2.1"],
                status={"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}, {"hostname": "h"}]}},
            ),
            ["t", "LoadBalancer", "10.0.0.1", "192.0.2.7,h,192.0.2.1", "<none>", "10m", "<none>"],
        ),
    ],
)
def test_services(cells: list[Any], expected: list[Any]) -> None:
    assert cells == expected


RUNNING = {"name": "c", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": CREATED}}}


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason}}, **more}


def ended(**terminated: Any) -> dict[str, Any]:
    return {"name": "c", "ready": False, "restartCount": 0, "state": {"terminated": {"exitCode": 0, **terminated}}}


@pytest.mark.parametrize(
    ("pod", "ready", "status", "restarts"),
    [
        pytest.param({}, "0/1", "Pending", "0", id="nothing has happened"),
        pytest.param(
            {"status": {"phase": "Running", "containerStatuses": [RUNNING]}}, "1/1", "Running", "0", id="runs"
        ),
        pytest.param(
            {"status": {"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff", restartCount=4)]}},
            "0/1",
            "CrashLoopBackOff",
            "4",
            id="crashes",
        ),
        pytest.param(
            {
                "status": {
                    "phase": "Running",
                    "containerStatuses": [
                        {
                            **RUNNING,
                            "restartCount": 2,
                            "lastState": {"terminated": {"finishedAt": "2025-12-31T23:59:00Z", "exitCode": 1}},
                        }
                    ],
                }
            },
            "1/1",
            "Running",
            "2 (60s ago)",
            id="restarted",
        ),
        pytest.param(
            {"status": {"phase": "Failed", "containerStatuses": [ended(exitCode=3)]}},
            "0/1",
            "ExitCode:3",
            "0",
            id="ends",
        ),
        pytest.param(
            {"status": {"phase": "Failed", "containerStatuses": [ended(signal=9, exitCode=137)]}},
            "0/1",
            "Signal:9",
            "0",
            id="killed",
        ),
        pytest.param(
            {"status": {"phase": "Succeeded", "containerStatuses": [ended(reason="Completed")]}},
            "0/1",
            "Completed",
            "0",
            id="done",
        ),
        pytest.param(
            {
                "metadata": {"deletionTimestamp": CREATED},
                "status": {"phase": "Running", "containerStatuses": [RUNNING]},
            },
            "1/1",
            "Terminating",
            "0",
            id="goes",
        ),
        pytest.param(
            {
                "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}, {"name": "j"}]},
                "status": {
                    "phase": "Pending",
                    "initContainerStatuses": [{**ended(), "name": "i"}, {"name": "j", "restartCount": 0, "state": {}}],
                },
            },
            "0/1",
            "Init:1/2",
            "0",
            id="initialises",
        ),
        pytest.param(
            {
                "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]},
                "status": {"phase": "Pending", "initContainerStatuses": [{**ended(exitCode=1), "name": "i"}]},
            },
            "0/1",
            "Init:ExitCode:1",
            "0",
            id="fails to initialise",
        ),
        pytest.param({"status": {"phase": "Failed", "reason": "Evicted"}}, "0/1", "Evicted", "0", id="evicted"),
    ],
)
def test_pods(pod: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    fields = {"spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Pending"}, **pod}
    assert row("", "pods", **fields)[1:4] == [ready, status, restarts]


def test_a_pod_s_wide_columns() -> None:
    cells = row(
        "",
        "pods",
        spec={"containers": [], "nodeName": "n", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
        status={"podIPs": [{"ip": "10.1.1.1"}], "conditions": [{"type": "a", "status": "True"}]},
    )
    assert cells[4:] == ["10m", "10.1.1.1", "n", "<none>", "1/2"]


@pytest.mark.parametrize(
    ("group", "plural", "fields", "expected"),
    [
        ("", "configmaps", {"data": {"a": "1"}, "binaryData": {"b": "eA=="}}, ["t", 2, "10m"]),
        ("", "secrets", {"type": "Opaque", "data": {"a": "eA=="}}, ["t", "Opaque", 1, "10m"]),
        ("", "namespaces", {"status": {"phase": "Active"}}, ["t", "Active", "10m"]),
        ("coordination.k8s.io", "leases", {"spec": {"holderIdentity": "me"}}, ["t", "me", "10m"]),
        ("", "limitranges", {}, ["t", CREATED]),
        (
            "",
            "endpoints",
            {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)], "ports": [{"port": 80}]}]},
            ["t", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more...", "10m"],
        ),
        ("", "endpoints", {}, ["t", "<none>", "10m"]),
        (
            "discovery.k8s.io",
            "endpointslices",
            {"addressType": "IPv4", "ports": None, "endpoints": [{"addresses": ["10.0.0.1"]}]},
            ["t", "IPv4", "<unset>", "10.0.0.1", "10m"],
        ),
        (
            "apps",
            "deployments",
            {
                "spec": {
                    "replicas": 2,
                    "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]},
                    "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
                },
                "status": {"readyReplicas": 1},
            },
            ["t", "1/2", 0, 0, "10m", "c", "i", "a in (x,y)"],
        ),
        (
            "batch",
            "jobs",
            {
                "spec": {"completions": 3},
                "status": {
                    "succeeded": 3,
                    "startTime": "2025-12-31T23:50:00Z",
                    "completionTime": "2025-12-31T23:51:30Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            ["t", "Complete", "3/3", "90s", "10m", "", "", "<none>"],
        ),
        (
            "",
            "nodes",
            {
                "metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.2"},
                },
            },
            [
                "t",
                "Ready,SchedulingDisabled",
                "control-plane",
                "10m",
                "v1.36.2",
                "192.0.2.1",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>",
            ],
        ),
        (
            "",
            "events",
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "type": "Warning",
                "reason": "Bad",
                "message": "it is\n",
                "source": {"component": "kubelet", "host": "n"},
                "count": 3,
                "firstTimestamp": "2025-12-31T23:58:00Z",
                "lastTimestamp": "2025-12-31T23:59:00Z",
            },
            ["60s", "Warning", "Bad", "pod/p", "", "kubelet, n", "it is", "2m", 3, "t"],
        ),
        (
            "rbac.authorization.k8s.io",
            "rolebindings",
            {
                "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
            },
            ["t", "Role/r", "10m", "u", "", "n/s"],
        ),
    ],
)
def test_other_kinds(group: str, plural: str, fields: dict[str, Any], expected: list[Any]) -> None:
    assert row(group, plural, **fields) == expected


def test_a_scale_has_its_own_table() -> None:
    metadata = {"name": "t", "creationTimestamp": CREATED}
    fields = {"metadata": metadata, "spec": {"replicas": 3}, "status": {"replicas": 2}}
    deployments = KINDS.find("apps", "v1", "deployments")
    assert deployments is not None
    table = deployments.printer_of(GroupVersionKind("autoscaling", "v1", "Scale"))
    scale = Object.from_dict({"apiVersion": "autoscaling/v1", "kind": "Scale", **fields})
    assert [column.name for column in table.columns] == ["Name", "Desired", "Available", "Age"]
    assert table.cells(scale, NOW) == ["t", 3, 2, "10m"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "list" in kind.verbs], ids=repr)
def test_an_empty_object_has_a_row_in_every_table(kind: Any) -> None:
    obj = Object.from_dict({"apiVersion": kind.gvk.api_version, "kind": kind.name, "metadata": {"name": "t"}})
    table = kind.printer
    assert len(table.cells(obj, NOW)) == len(table.columns)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-0.5), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=9, seconds=59), "9m59s"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=59), "7h59m"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2), "2d"),
        (timedelta(days=7, hours=23), "7d23h"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=1000), "2y270d"),
        (timedelta(days=4000), "10y"),
    ],
)
def test_durations_are_formatted_like_kubectl(duration: timedelta, text: str) -> None:
    assert human_duration(duration) == text


def test_an_object_without_a_creation_time_has_an_unknown_age() -> None:
    assert ages_at(NOW).since(None) == "<unknown>"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_rows_of_terminated_pods_show_it(phase: str) -> None:
    conditions = PODS.conditions
    assert conditions is not None
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"phase": phase}}
    (condition,) = conditions(Object.from_dict(body))
    assert (condition.type, condition.status, condition.reason) == ("Completed", "True", phase)
    body["status"] = {"phase": "Running"}
    assert conditions(Object.from_dict(body)) == ()
