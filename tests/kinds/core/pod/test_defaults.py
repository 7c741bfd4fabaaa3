"""Tests of the defaults of a pod, and of its first status."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kinds.stage import NOW, Stage, merged, staged

TOLERATIONS = [
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for taint in ("not-ready", "unreachable")
]
EXEC = {"exec": {"command": ["x"]}}
PROBED = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
PEER = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
def stage() -> Stage:
    return staged("v1/pods")


def create(stage: Stage, spec: dict[str, Any], container: dict[str, Any] | None = None) -> dict[str, Any]:
    containers = [merged({"name": "c", "image": "i"}, container or {})]
    return stage.create({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers, **spec}})


def test_the_minimal_pod_is_defaulted(stage: Stage) -> None:
    made = create(stage, {})
    container = {
        "name": "c",
        "image": "i",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always",
    }
    assert made["spec"] == {
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": TOLERATIONS,
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"image": "i:1"}, {"imagePullPolicy": "IfNotPresent"}, id="tag"),
        pytest.param({"image": "i:latest"}, {"imagePullPolicy": "Always"}, id="latest"),
        pytest.param({"image": "r.example:5000/i"}, {"imagePullPolicy": "Always"}, id="port of a registry"),
        pytest.param({"image": f"i@sha256:{'0' * 64}"}, {"imagePullPolicy": "IfNotPresent"}, id="digest"),
        pytest.param({"image": "i", "imagePullPolicy": "Never"}, {"imagePullPolicy": "Never"}, id="said"),
        pytest.param(
            {"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}, id="protocol"
        ),
        pytest.param({"livenessProbe": EXEC}, {"livenessProbe": {**EXEC, **PROBED}}, id="probe"),
        pytest.param(
            {"startupProbe": {"httpGet": {"port": 1}, "failureThreshold": 9}},
            {
                "startupProbe": {
                    "httpGet": {"path": "/", "port": 1, "scheme": "HTTP"},
                    **PROBED,
                    "failureThreshold": 9,
                }
            },
            id="http probe",
        ),
        pytest.param(
            {"readinessProbe": {"grpc": {"port": 1}}},
            {"readinessProbe": {"grpc": {"port": 1, "service": ""}, **PROBED}},
            id="grpc probe",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"httpGet": {"port": "p"}}}},
            {"lifecycle": {"preStop": {"httpGet": {"path": "/", "port": "p", "scheme": "HTTP"}}}},
            id="hook",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}},
            {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}},
            id="requests are limits",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "1n"}}},
            {"resources": {"limits": {"cpu": "1m"}, "requests": {"cpu": "1m"}}},
            id="thousandths",
        ),
        pytest.param(
            {"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            {"env": [{"name": "a", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}]},
            id="reference",
        ),
    ],
)
def test_containers(stage: Stage, given: dict[str, Any], expected: dict[str, Any]) -> None:
    made = create(stage, {}, given)["spec"]["containers"][0]
    assert {field: made[field] for field in expected} == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"terminationGracePeriodSeconds": -5}, {"terminationGracePeriodSeconds": 1}, id="past"),
        pytest.param({"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}, id="at once"),
        pytest.param({"serviceAccount": "s"}, {"serviceAccountName": "s", "serviceAccount": "s"}, id="account"),
        pytest.param(
            {"tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]},
            {"tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}, TOLERATIONS[0]]},
            id="one toleration",
        ),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]}, {"tolerations": [{"operator": "Exists"}]}, id="all tolerations"
        ),
        pytest.param({"volumes": [{"name": "v"}]}, {"volumes": [{"name": "v", "emptyDir": {}}]}, id="volume"),
        pytest.param(
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            {"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}]},
            id="secret",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/", "type": ""}}]},
            id="host path",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}]}}]},
            {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}], "defaultMode": 420}}]},
            id="projected",
        ),
        pytest.param(
            {
                "volumes": [
                    {"name": "v", "downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]}}
                ]
            },
            {
                "volumes": [
                    {
                        "name": "v",
                        "downwardAPI": {
                            "items": [{"path": "a", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}],
                            "defaultMode": 420,
                        },
                    }
                ]
            },
            id="downward api",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "azureDisk": {"diskName": "d", "diskURI": "https://x"}}]},
            {
                "volumes": [
                    {
                        "name": "v",
                        "azureDisk": {
                            "diskName": "d",
                            "diskURI": "https://x",
                            "cachingMode": "ReadWrite",
                            "fsType": "ext4",
                            "readOnly": False,
                            "kind": "Shared",
                        },
                    }
                ]
            },
            id="azure disk",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {},
                        "matchLabelKeys": ["app"],
                    }
                ]
            },
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
                        "matchLabelKeys": ["app"],
                    }
                ]
            },
            id="labels to spread by",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {
                        PEER: [{"topologyKey": "z", "labelSelector": {}, "mismatchLabelKeys": ["app", "none"]}]
                    }
                }
            },
            {
                "affinity": {
                    "podAntiAffinity": {
                        PEER: [
                            {
                                "topologyKey": "z",
                                "labelSelector": {
                                    "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]
                                },
                                "mismatchLabelKeys": ["app", "none"],
                            }
                        ]
                    }
                }
            },
            id="labels to avoid",
        ),
    ],
)
def test_specs(stage: Stage, given: dict[str, Any], expected: dict[str, Any]) -> None:
    made = create(stage, given)["spec"]
    assert {field: made[field] for field in expected} == expected


def test_ports_of_the_host(stage: Stage) -> None:
    ports = create(stage, {"hostNetwork": True}, {"ports": [{"containerPort": 80}]})["spec"]["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_pod_level_resources_are_defaulted_from_containers(stage: Stage) -> None:
    """KEP-2837."""
    resources = {"limits": {"cpu": "2", "hugepages-2Mi": "2Mi"}}
    container = {"resources": {"requests": {"memory": "1Gi"}}}
    made = create(stage, {"resources": resources}, container)["spec"]["resources"]
    assert made == {**resources, "requests": {"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "2Mi"}}


def requests(cpu: str = "", memory: str = "") -> dict[str, str]:
    return {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}, {}], "BestEffort"),
        ([{"requests": {"ephemeral-storage": "1Gi"}}, {}], "BestEffort"),
        ([{"requests": requests("0")}, {}], "BestEffort"),
        ([{"requests": requests("1")}, {}], "Burstable"),
        ([{"limits": requests("1", "1Gi")}, {}], "Burstable"),
        ([{"limits": requests("1")}, {"limits": requests("1")}], "Burstable"),
        ([{"limits": requests("1", "1Gi")}, {"limits": requests("500m", "1Gi")}], "Guaranteed"),
        ([{"limits": requests("1", "1Gi"), "requests": requests("1000m", "1024Mi")}], "Guaranteed"),
        ([{"limits": requests("2", "1Gi"), "requests": requests("1", "1Gi")}], "Burstable"),
    ],
)
def test_the_quality_of_service(stage: Stage, resources: list[dict[str, Any]], expected: str) -> None:
    containers = [{"name": f"c{index}", "image": "i", "resources": each} for index, each in enumerate(resources)]
    assert create(stage, {"containers": containers})["status"]["qosClass"] == expected


def test_pod_level_resources_determine_the_quality_of_service(stage: Stage) -> None:
    limits = requests("1", "1Gi")
    assert create(stage, {"resources": {"limits": limits}})["status"]["qosClass"] == "Guaranteed"
    assert create(stage, {"resources": {"requests": limits}})["status"]["qosClass"] == "Burstable"


def test_a_gated_pod_has_a_condition(stage: Stage) -> None:
    made = create(stage, {"schedulingGates": [{"name": "wait"}]})
    assert made["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": NOW,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def test_the_status_of_a_new_pod_is_reset(stage: Stage) -> None:
    made = stage.create({"spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}})
    assert made["status"]["phase"] == "Pending"


def test_pod_ip_and_pod_ips_are_synchronized(stage: Stage) -> None:
    pod = create(stage, {})
    assert stage.update(pod, {"status": {"podIP": "10.0.0.1"}}, "status")["status"]["podIPs"] == [{"ip": "10.0.0.1"}]
    assert stage.update(pod, {"status": {"podIPs": [{"ip": "10.0.0.1"}]}}, "status")["status"]["podIP"] == "10.0.0.1"


def test_deprecated_annotations_become_fields(stage: Stage) -> None:
    """KEP-24."""
    annotation = "container.apparmor.security.beta.kubernetes.io/c"
    fields = {
        "metadata": {"annotations": {annotation: "localhost/x"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    made = stage.create(fields)
    profile = {"type": "Localhost", "localhostProfile": "x"}
    assert made["spec"]["containers"][0]["securityContext"] == {"appArmorProfile": profile}
    deprecated = 'deprecated since v1.30; use the "appArmorProfile" field instead'
    assert stage.warnings == [f"metadata.annotations[{annotation}]: {deprecated}"]


@pytest.mark.parametrize(
    ("resources", "quality"),
    [(None, "Burstable"), ({}, "BestEffort"), ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed")],
)
def test_resources_of_a_pod_as_a_whole_decide_its_quality_of_service(
    resources: dict[str, Any] | None, quality: str
) -> None:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"containers": containers} if resources is None else {"containers": containers, "resources": resources}
    assert staged("v1/pods").create({"spec": spec})["status"]["qosClass"] == quality
