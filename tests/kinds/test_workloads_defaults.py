"""Tests of workloads: defaults, assigned fields, and generations."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.errors import Forbidden
from tests.kinds.refusals import VALID
from tests.kinds.stage import NOW, Stage, find_kind, merged, staged

DEPLOYMENTS, DAEMONS, SETS = "apps/v1/deployments", "apps/v1/daemonsets", "apps/v1/statefulsets"
JOBS, CRON_JOBS = "batch/v1/jobs", "batch/v1/cronjobs"
CLAIMS, VOLUMES = "v1/persistentvolumeclaims", "v1/persistentvolumes"
AUTOSCALERS = "autoscaling/v2/horizontalpodautoscalers"
INGRESSES, POLICIES = "networking.k8s.io/v1/ingresses", "networking.k8s.io/v1/networkpolicies"
RBAC = "rbac.authorization.k8s.io/v1"
SCALE_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def create(stage: Stage, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    return stage.create(merged(copy.deepcopy(VALID[stage.path]), changes or {}))


@pytest.mark.parametrize(
    ("path", "changes", "expected"),
    [
        (
            DEPLOYMENTS,
            {},
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            },
        ),
        (
            DEPLOYMENTS,
            {"replicas": 0, "strategy": {"type": "Recreate"}},
            {"replicas": 0, "strategy": {"type": "Recreate"}},
        ),
        ("apps/v1/replicasets", {}, {"replicas": 1}),
        ("v1/replicationcontrollers", {}, {"replicas": 1, "selector": {"a": "b"}}),
        (
            DAEMONS,
            {},
            {
                "revisionHistoryLimit": 10,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            },
        ),
        (
            SETS,
            {},
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            },
        ),
        (SETS, {"updateStrategy": {"type": "OnDelete"}}, {"updateStrategy": {"type": "OnDelete"}}),
        (
            JOBS,
            {},
            {
                "parallelism": 1,
                "completions": 1,
                "backoffLimit": 6,
                "completionMode": "NonIndexed",
                "suspend": False,
                "manualSelector": False,
                "podReplacementPolicy": "TerminatingOrFailed",
            },
        ),
        (JOBS, {"parallelism": 3}, {"parallelism": 3, "completions": None}),
        (
            JOBS,
            {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1},
            {"parallelism": 1, "backoffLimit": 2147483647},
        ),
        (
            JOBS,
            {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "x"}]}]}},
            {
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "x", "status": "True"}]}]
                },
                "podReplacementPolicy": "Failed",
            },
        ),
        (
            CRON_JOBS,
            {},
            {
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
            },
        ),
        (CLAIMS, {}, {"volumeMode": "Filesystem"}),
        (VOLUMES, {}, {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"}),
        (VOLUMES, {}, {"hostPath": {"path": "/x", "type": ""}}),
        (
            AUTOSCALERS,
            {},
            {
                "minReplicas": 1,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                    }
                ],
            },
        ),
        (
            AUTOSCALERS,
            {"behavior": {"scaleUp": {"selectPolicy": "Min"}}},
            {
                "behavior": {
                    "scaleUp": {
                        "stabilizationWindowSeconds": 0,
                        "selectPolicy": "Min",
                        "policies": [
                            {"type": "Pods", "value": 4, "periodSeconds": 15},
                            {"type": "Percent", "value": 100, "periodSeconds": 15},
                        ],
                    },
                    "scaleDown": SCALE_DOWN,
                }
            },
        ),
        (POLICIES, {}, {"policyTypes": ["Ingress"]}),
        (
            POLICIES,
            {"egress": [{"ports": [{"port": 1}]}]},
            {"policyTypes": ["Ingress", "Egress"], "egress": [{"ports": [{"protocol": "TCP", "port": 1}]}]},
        ),
    ],
)
def test_specs(path: str, changes: dict[str, Any], expected: dict[str, Any]) -> None:
    made = create(staged(path), {"spec": changes})["spec"]
    assert {field: made.get(field) for field in expected} == expected


@pytest.mark.parametrize("path", [DEPLOYMENTS, "apps/v1/replicasets", DAEMONS, SETS, JOBS, "v1/replicationcontrollers"])
def test_templates_are_defaulted_like_pods(path: str) -> None:
    pod = create(staged(path))["spec"]["template"]["spec"]
    assert pod["dnsPolicy"] == "ClusterFirst"
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert pod.keys().isdisjoint(("priority", "tolerations", "enableServiceLinks", "preemptionPolicy"))


@pytest.mark.parametrize(
    "path",
    [
        DEPLOYMENTS,
        "apps/v1/replicasets",
        "v1/replicationcontrollers",
        DAEMONS,
        SETS,
        JOBS,
        CRON_JOBS,
        INGRESSES,
        POLICIES,
        "policy/v1/poddisruptionbudgets",
        "v1/podtemplates",
    ],
)
def test_the_generation_counts_changes_of_the_spec(path: str) -> None:
    stage = staged(path)
    made = create(stage)
    assert made["metadata"]["generation"] == 1
    assert stage.update(made, {"metadata": {"labels": {"l": "m"}}})["metadata"]["generation"] == 1
    annotated = stage.update(made, {"metadata": {"annotations": {"x": "y"}}})["metadata"]["generation"]
    assert annotated == (2 if path == DEPLOYMENTS else 1)
    pod = {"template": {"metadata": {"annotations": {"x": "y"}}}}
    wanted: dict[str, Any] = {
        JOBS: {"spec": {"suspend": True}},
        CRON_JOBS: {"spec": {"suspend": True}},
        INGRESSES: {"spec": {"ingressClassName": "x"}},
        POLICIES: {"spec": {"policyTypes": ["Egress"]}},
        "policy/v1/poddisruptionbudgets": {"spec": {"minAvailable": 2}},
        "v1/podtemplates": pod,
    }
    assert stage.update(made, wanted.get(path, {"spec": pod}))["metadata"]["generation"] == 2


def test_a_daemon_set_counts_template_generations() -> None:
    stage = staged(DAEMONS)
    made = create(stage)
    count = "deprecated.daemonset.template.generation"
    assert made["metadata"]["annotations"] == {count: "1"}
    changed = stage.update(made, {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}})
    assert changed["metadata"]["annotations"] == {count: "2"}
    assert stage.update(changed, {"metadata": {"annotations": None}})["metadata"]["annotations"] == {count: "2"}


def test_a_replication_controller_gets_its_templates_labels() -> None:
    assert create(staged("v1/replicationcontrollers"))["metadata"]["labels"] == {"a": "b"}


def test_claim_templates_of_a_stateful_set_are_defaulted() -> None:
    (claim,) = create(staged(SETS))["spec"]["volumeClaimTemplates"]
    assert (claim["kind"], claim["apiVersion"]) == ("PersistentVolumeClaim", "v1")
    assert (claim["spec"]["volumeMode"], claim["status"]) == ("Filesystem", {"phase": "Pending"})


def test_a_job_selects_its_pods_by_its_uid() -> None:
    made = create(staged(JOBS))
    labels = {
        "batch.kubernetes.io/controller-uid": "uid-1",
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": "uid-1",
        "job-name": "x",
    }
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-1"}}
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] == labels


def test_a_job_is_selectable_by_its_succeeded_count() -> None:
    stage = staged(JOBS)
    made = create(stage)
    done = stage.update(made, {"status": {"succeeded": 3}}, "status")
    found = [stage.strategy.selectable(Object.from_dict(each)) for each in (made, done)]
    assert found == [{"status.successful": "0"}, {"status.successful": "3"}]


def storage_class(name: str, created: str, *, default: bool = True, **rest: Any) -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true" if default else "false"}
    metadata = {"name": name, "creationTimestamp": created, "annotations": annotations}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, **rest}


def test_a_claim_gets_the_newest_default_class() -> None:
    old, new, other = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    classes = (storage_class("b", new), storage_class("a", old), storage_class("c", new))
    stage = staged(CLAIMS, *classes, storage_class("z", other, default=False))
    made = create(stage)
    assert (made["spec"]["storageClassName"], made["status"]) == ("b", {"phase": "Pending"})
    assert create(stage, {"spec": {"storageClassName": ""}})["spec"]["storageClassName"] == ""
    annotated = create(stage, {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "q"}}})
    assert "storageClassName" not in annotated["spec"]
    deprecated = 'deprecated since v1.8; use "storageClassName" attribute instead'
    assert stage.warnings == [f"metadata.annotations[volume.beta.kubernetes.io/storage-class]: {deprecated}"]


SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
POPULATOR = {"apiGroup": "example.com", "kind": "Book", "name": "s"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"dataSource": SNAPSHOT}, {"dataSource": SNAPSHOT, "dataSourceRef": SNAPSHOT}),
        ({"dataSourceRef": POPULATOR}, {"dataSource": POPULATOR, "dataSourceRef": POPULATOR}),
        ({"dataSource": POPULATOR}, {}),
        ({"dataSourceRef": {**POPULATOR, "namespace": "n"}}, {}),
    ],
)
def test_data_source_and_data_source_ref_are_synchronized(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """KEP-1495."""
    stage = staged(CLAIMS)
    made = create(stage, {"spec": given})
    assert {field: each for field, each in made["spec"].items() if field.startswith("data")} == expected
    if expected:
        assert stage.update(made, {"spec": {"dataSourceRef": None}}) == made


@pytest.mark.parametrize(
    ("status", "expands", "problem"),
    [
        ({"phase": "Bound"}, True, ""),
        (
            {"phase": "Bound"},
            False,
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
            "resize",
        ),
    ],
)
def test_a_claim_can_grow_if_its_class_allows(status: dict[str, Any], expands: bool, problem: str) -> None:
    stage = staged(CLAIMS, storage_class("a", NOW, allowVolumeExpansion=expands))
    bound = stage.update(create(stage), {"status": status}, "status")
    larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    if not problem:
        assert stage.update(bound, larger)["spec"]["resources"] == larger["spec"]["resources"]
        return
    with pytest.raises(Forbidden) as refused:
        stage.update(bound, larger)
    assert str(refused.value) == f'persistentvolumeclaims "x" is forbidden: {problem}'


def test_a_volume_records_the_transition_time_of_its_phase() -> None:
    stage = staged(VOLUMES)
    made = create(stage)
    assert made["status"] == {"phase": "Pending", "lastPhaseTransitionTime": NOW}
    made["status"]["lastPhaseTransitionTime"] = "2025-01-01T00:00:00Z"
    changed = stage.update(made, {"status": {"phase": "Available"}}, "status")
    assert changed["status"] == {"phase": "Available", "lastPhaseTransitionTime": NOW}
    said = {"phase": "Failed", "lastPhaseTransitionTime": "2025-02-01T00:00:00Z"}
    assert stage.update(made, {"status": said}, "status")["status"] == said
    assert stage.update(made, {"status": {"reason": "x"}}, "status")["status"] == {**made["status"], "reason": "x"}


def test_an_ingress_gets_the_default_class() -> None:
    metadata = {"name": "c", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    default = {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": metadata}
    stage = staged(INGRESSES, default)
    assert create(stage)["spec"]["ingressClassName"] == "c"
    annotated = create(stage, {"metadata": {"annotations": {"kubernetes.io/ingress.class": "q"}}})
    assert "ingressClassName" not in annotated["spec"]
    instead = "please use 'spec.ingressClassName' instead"
    assert stage.warnings == [f'annotation "kubernetes.io/ingress.class" is deprecated, {instead}']


def test_roles_and_subjects_have_a_default_group() -> None:
    kinds = ("User", "Group", "ServiceAccount")
    subjects = [{"kind": kind, "name": "s", "namespace": "n"} for kind in kinds]
    made = create(staged(f"{RBAC}/clusterrolebindings"), {"subjects": subjects})
    assert made["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [each.get("apiGroup") for each in made["subjects"]] == ["rbac.authorization.k8s.io"] * 2 + [None]


NAMES = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
    "recommended: [must not contain dots]"
)
OLD_LABEL = {"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}}
INSTEAD = 'deprecated since v1.14; use "kubernetes.io/os" instead'


@pytest.mark.parametrize(
    ("path", "changes", "warnings"),
    [
        (DEPLOYMENTS, {"metadata": {"name": "a.b"}}, [NAMES]),
        (DAEMONS, {"metadata": {"name": "a.b"}}, []),
        (JOBS, {"metadata": {"name": "a.b"}}, [NAMES]),
        (
            DEPLOYMENTS,
            {"spec": {"template": OLD_LABEL}},
            [f"spec.template.spec.nodeSelector[beta.kubernetes.io/os]: {INSTEAD}"],
        ),
        (
            CRON_JOBS,
            {"spec": {"jobTemplate": {"spec": {"template": OLD_LABEL}}}},
            [f"spec.jobTemplate.spec.template.spec.nodeSelector[beta.kubernetes.io/os]: {INSTEAD}"],
        ),
        (
            "v1/podtemplates",
            {"template": OLD_LABEL},
            [f"template.spec.nodeSelector[beta.kubernetes.io/os]: {INSTEAD}"],
        ),
        (
            JOBS,
            {"spec": {"completionMode": "Indexed", "completions": 100001, "parallelism": 10001}},
            [
                "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
                "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
            ],
        ),
        (
            VOLUMES,
            {
                "metadata": {"annotations": {"volume.beta.kubernetes.io/mount-options": "x"}},
                "spec": {
                    "persistentVolumeReclaimPolicy": "Recycle",
                    "hostPath": None,
                    "rbd": {"monitors": ["m"], "image": "i"},
                },
            },
            [
                "metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "
                '"mountOptions" attribute instead',
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the "
                "recommended approach is to use dynamic provisioning.",
                "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
            ],
        ),
        (
            CLAIMS,
            {"spec": {"resources": {"requests": {"storage": "1500m"}}}},
            ['spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer'],
        ),
        (
            POLICIES,
            {"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "FD00::/64"}}]}]}},
            [
                'spec.ingress[0].from[0].ipBlock.cidr: IPv6 CIDR value "FD00::/64" should be in RFC 5952 canonical '
                'format ("fd00::/64")'
            ],
        ),
    ],
)
def test_warnings(path: str, changes: dict[str, Any], warnings: list[str]) -> None:
    stage = staged(path)
    made = create(stage, changes)
    assert stage.warnings == warnings
    stage.update(made, {"metadata": {"labels": {"l": "m"}}})
    assert stage.warnings == (
        [] if made["kind"] not in ("PersistentVolume", "PersistentVolumeClaim", "NetworkPolicy") else warnings
    )


def test_an_existing_time_zone_in_a_schedule_is_tolerated() -> None:
    stage = staged(CRON_JOBS)
    made = create(stage)
    made["spec"]["schedule"] = "TZ=Etc/UTC * * * * *"
    stage.update(made, {"metadata": {"labels": {"l": "m"}}})
    page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
    assert stage.warnings == [
        f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {page} for more details"
    ]
    both = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
    refusal = stage.update_refusal(made, {"spec": {"timeZone": "Etc/UTC"}})
    assert refusal == [("spec.schedule", f'Invalid value: "TZ=Etc/UTC * * * * *": {both}')]


@pytest.mark.parametrize(
    ("path", "flags"),
    [
        ("v1/pods", {"returns_deleted"}),
        (CLAIMS, {"returns_deleted"}),
        (VOLUMES, {"returns_deleted"}),
        ("v1/podtemplates", {"returns_deleted"}),
        (DEPLOYMENTS, set()),
        ("policy/v1/poddisruptionbudgets", {"guarded"}),
        (f"{RBAC}/roles", {"allow_create_on_update"}),
        (f"{RBAC}/clusterrolebindings", {"allow_create_on_update"}),
    ],
)
def test_flags(path: str, flags: set[str]) -> None:
    kind = find_kind(path)
    strategy = kind.strategy
    found = {flag for flag in ("returns_deleted", "allow_create_on_update") if getattr(strategy, flag)}
    assert found | (set() if strategy.allow_unconditional_update else {"guarded"}) == flags


@pytest.mark.parametrize(
    ("path", "name", "good"),
    [
        (f"{RBAC}/roles", "system:a", True),
        (f"{RBAC}/roles", "a/b", False),
        ("policy/v1/poddisruptionbudgets", "A_b", True),
        (SETS, "a.b", False),
        (DEPLOYMENTS, "a.b", True),
        (DEPLOYMENTS, "A", False),
    ],
)
def test_names(path: str, name: str, good: bool) -> None:
    kind = find_kind(path)
    assert (not kind.strategy.name_check(name, False)) is good
