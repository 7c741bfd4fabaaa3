"""Tests that workload controllers report specs from which no pod can be created, and retry with increasing delays and
few writes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from ctrlmgr.controllers import cronjob, horizontal_pod_autoscaler
from ctrlmgr.controllers.cronjob import controller as cron_job_controller
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.disruption import controller as disruption_controller
from ctrlmgr.controllers.horizontal_pod_autoscaler import controller as autoscaler_controller
from ctrlmgr.manager import Controller
from tests.controllers.workloads.makers import (
    daemon_sets,
    deployments,
    jobs,
    replica_sets,
    replication_controllers,
    stateful_sets,
)
from tests.controllers.workloads.stage import MERGE, SYSTEM, WorkloadStage, template

MINUTES = 3
WRITES_A_MINUTE = 12
"""The maximum number of writes for an object that is always invalid: updates of its status, and a few retries."""
ATTEMPTS_A_MINUTE = 60
"""The maximum number of Events for all objects in the first retries, when delays are short."""

LABELS = {"app": "web"}
FOREIGN = "registry.example/app:1"


def cron_jobs(stage: WorkloadStage) -> Controller:
    return cron_job_controller.build(stage.context, cronjob.Options())


def disruption(stage: WorkloadStage) -> Controller:
    return disruption_controller.build(stage.context, NoOptions())


def autoscalers(stage: WorkloadStage) -> Controller:
    return autoscaler_controller.build(stage.context, horizontal_pod_autoscaler.Options())


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Disable logging of failed attempts, because hundreds of attempts fail."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


@pytest.fixture
def stage() -> WorkloadStage:
    stage = WorkloadStage(
        *(replica_sets, replication_controllers, deployments, stateful_sets, daemon_sets, jobs, cron_jobs, disruption),
        autoscalers,
    )
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "node-0"}}
    assert stage.send("POST", "/api/v1/nodes", node).code == 201
    stage.send("PATCH", "/api/v1/nodes/node-0", {"spec": {"taints": None}}, media_type=MERGE)
    return stage


def workload(kind: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    wanted = {"selector": {"matchLabels": LABELS}, "template": template(LABELS), **spec}
    return {"kind": kind, "apiVersion": "apps/v1", "metadata": {"name": name}, "spec": wanted}


def refused(**spec: Any) -> dict[str, Any]:
    """Return a pod template that the API accepts in a workload, but from which no pod can be created."""
    return template(LABELS, priorityClassName="there-is-none", **spec)


def a_refused_template(stage: WorkloadStage) -> None:
    for kind, plural in (("ReplicaSet", "replicasets"), ("Deployment", "deployments"), ("DaemonSet", "daemonsets")):
        stage.create(f"apps/v1/{plural}", workload(kind, kind.lower(), template=refused()))
    stage.create("apps/v1/statefulsets", workload("StatefulSet", template=refused(), serviceName="web"))
    controller = {"kind": "ReplicationController", "apiVersion": "v1", "metadata": {"name": "controller"}}
    stage.create("replicationcontrollers", {**controller, "spec": {"replicas": 2, "template": refused()}})
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "job"}}
    stage.create("batch/v1/jobs", {**job, "spec": {"template": refused(restartPolicy="Never")}})


def names_that_are_too_long(stage: WorkloadStage) -> None:
    name = "n" * 60
    stage.create("apps/v1/statefulsets", workload("StatefulSet", name, serviceName="web"))
    stage.create("apps/v1/daemonsets", workload("DaemonSet", "d" * 250))
    stage.create("apps/v1/deployments", workload("Deployment", "e" * 250))


def overlapping_selectors(stage: WorkloadStage) -> None:
    for number in range(2):
        stage.create("apps/v1/replicasets", workload("ReplicaSet", f"set-{number}", replicas=2))
        stage.create("apps/v1/deployments", workload("Deployment", f"deployment-{number}", replicas=2))
    stage.create("apps/v1/daemonsets", workload("DaemonSet"))


def pods_that_are_not_theirs(stage: WorkloadStage) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "u", "controller": True}
    for number in range(3):
        metadata = {"name": f"foreign-{number}", "labels": LABELS, "ownerReferences": [owner]}
        spec = {"containers": [{"name": "c", "image": FOREIGN}]}
        stage.create("pods", {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec})
    stage.create("apps/v1/replicasets", workload("ReplicaSet", replicas=1))
    budget = {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "pdb"}}
    limits = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
    stage.create("policy/v1/poddisruptionbudgets", {**budget, "spec": limits})


def a_schedule_that_never_comes(stage: WorkloadStage) -> None:
    body = {"kind": "CronJob", "apiVersion": "batch/v1", "metadata": {"name": "never"}}
    inner = {"spec": {"template": template(LABELS, restartPolicy="Never")}}
    stage.create("batch/v1/cronjobs", {**body, "spec": {"schedule": "0 0 30 2 *", "jobTemplate": inner}})
    jobs_of_it = {"spec": {"template": refused(restartPolicy="Never")}}
    body["metadata"] = {"name": "refused"}
    spec = {"schedule": "* * * * *", "jobTemplate": jobs_of_it, "concurrencyPolicy": "Forbid"}
    stage.create("batch/v1/cronjobs", {**body, "spec": spec})


def autoscalers_that_cannot_measure(stage: WorkloadStage) -> None:
    """Events for a missing target, for missing metrics, and for two autoscalers of one target."""
    stage.create("apps/v1/deployments", workload("Deployment", replicas=2))
    targets = {"absent": ("nothing", 3), "unmeasured": ("web", 3), "smaller": ("web", 1)}
    for name, (target, most) in targets.items():
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
        spec = {"scaleTargetRef": reference, "minReplicas": most, "maxReplicas": most}
        body = {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": {"name": name}}
        stage.create("autoscaling/v2/horizontalpodautoscalers", {**body, "spec": spec})


def pods_that_fail_at_once(stage: WorkloadStage) -> None:
    stage.create("apps/v1/daemonsets", workload("DaemonSet"))
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "job"}}
    spec = {"template": template(LABELS, restartPolicy="Never"), "backoffLimit": 1000}
    stage.create("batch/v1/jobs", {**job, "spec": spec})


@pytest.mark.parametrize(
    "bad",
    [
        a_refused_template,
        names_that_are_too_long,
        overlapping_selectors,
        pods_that_are_not_theirs,
        a_schedule_that_never_comes,
        autoscalers_that_cannot_measure,
        pods_that_fail_at_once,
    ],
    ids=lambda each: each.__name__,
)
def test_no_controller_writes_in_a_loop(stage: WorkloadStage, bad: Callable[[WorkloadStage], None]) -> None:
    bad(stage)
    stage.pass_by(1)
    began = stage.log.head().revision
    for _ in range(MINUTES * 20):
        for pod in stage.pods():
            if bad is pods_that_fail_at_once and pod["status"]["phase"] != "Failed":
                stage.report(pod, "Failed", node="node-0")
        stage.end_all()
        stage.pass_by(3)
    events = [each for each in stage.log.events_after(began, limit=100_000) if each.actor.startswith(SYSTEM)]
    objects = Counter((each.actor, each.object.resource, each.key) for each in events)
    assert all(count <= WRITES_A_MINUTE * MINUTES for count in objects.values()), objects.most_common(3)
    assert len(events) <= 3 * WRITES_A_MINUTE * MINUTES, Counter(each.actor for each in events)
    assert len(stage.recorded.all) <= ATTEMPTS_A_MINUTE * MINUTES, Counter(stage.recorded.all).most_common(3)


@pytest.mark.parametrize("hours", [-1, 1, 24 * 400])
def test_a_clock_jump_causes_no_unnecessary_writes(stage: WorkloadStage, hours: int) -> None:
    stage.create("apps/v1/deployments", workload("Deployment", replicas=2, minReadySeconds=5))
    stage.create(
        "apps/v1/statefulsets",
        workload(
            "StatefulSet",
            "db",
            serviceName="db",
            selector={"matchLabels": {"app": "db"}},
            template=template({"app": "db"}),
        ),
    )
    stage.settle()
    stage.pass_by(10)
    stage.settle()
    began = stage.log.head().revision
    stage.clock.set(stage.clock.now() + hours * 3600 * 1_000_000)
    for _ in range(120):
        stage.pass_by(3)
    events = [each for each in stage.log.events_after(began, limit=100_000) if each.actor.startswith(SYSTEM)]
    assert len(events) <= 12, [f"{each.actor} {each.object.resource}" for each in events]
