"""Tests of inferred causes: they are nearly always correct, are always marked as inferred, and are never stated for
writes of clients.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from bench.inference import claims
from bench.support.inferred import CLIENT, Table, measure, total
from bench.support.stories import tell
from ctrlmgr.api.resource import ENDPOINTS, NODES, PODS, SERVICES, Key, Resource, Revision
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.inferring.cause_rules import infer
from ctrlmgr.inspection.inferring.object_history import Step
from tests.inspection.scripted_cluster import ClusterScript, ScriptedCluster

MANAGER = "kube-controller-manager"
NEEDED = 0.98


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The causes that are inferred for a day of our own cluster, whose log contains the real causes."""
    cluster = ScriptedCluster()
    for name in ("kube-system", "kube-node-lease"):
        cluster.namespace(name)
    teller = ClusterScript(cluster)
    teller.rest(8)
    tell(teller, ("shop", "bank"), lost=65)
    return measure(cluster.log, tmp_path_factory.mktemp("inferred"))


def test_inferred_causes_are_correct(table: Table) -> None:
    found = total(table.values())
    assert found.causes > 600
    assert found.right >= NEEDED * found.causes
    assert found.named >= NEEDED * found.inferred
    assert all(claim.holds for claim in claims(table))


@pytest.mark.parametrize("kind", ["endpoints", "endpointslices.discovery.k8s.io"])
def test_nearly_all_changes_of_endpoints_have_an_inferred_cause(table: Table, kind: str) -> None:
    row = total(row for (resource, controller), row in table.items() if resource == kind and "endpoint" in controller)
    assert row.writes > 60
    assert row.inferred >= NEEDED * row.writes
    assert row.causes >= row.writes * 0.9
    assert row.direct >= NEEDED * row.causes


def test_nothing_is_inferred_for_changes_of_clients(table: Table) -> None:
    row = total(row for (_, controller), row in table.items() if controller == CLIENT)
    assert row.inferred == row.named == 2  # Endpoints that were deleted with their Service, in the same request.


class StepRecording:
    """A recording that a test writes step by step, with one second between steps."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def history(self, resource: Resource, key: Key, *, until: Revision) -> Sequence[Step]:
        return [step for step in self.histories(resource, key.namespace, until=until) if step.key == key]

    def histories(self, resource: Resource, namespace: str, *, until: Revision) -> Sequence[Step]:
        place = (resource, namespace)
        return [each for each in self.steps if (each.resource, each.key.namespace) == place and each.revision < until]

    def add(self, resource: Resource, name: str, fields: dict[str, Any] | None, actor: str = "") -> Step:
        """Append an object at the next revision; None stands for a deletion."""
        key = Key("" if resource == NODES else "shop", name)
        before = next((each for each in reversed(self.steps) if (each.resource, each.key) == (resource, key)), None)
        is_there = before is not None and before.type is not EventType.DELETED
        happened = EventType.DELETED if fields is None else EventType.MODIFIED if is_there else EventType.ADDED
        revision = len(self.steps) + 1
        body = json.dumps(dict(before.fields) if fields is None and before is not None else fields)
        was = before if is_there else None
        step = Step(
            revision, happened, resource, key, body, previous=was, actor=actor, recorded_at=revision * 1_000_000
        )
        self.steps.append(step)
        return step


def pod(ready: str, **metadata: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions}
    return {"metadata": {"labels": {"app": "web"}, **metadata}, "spec": {"nodeName": "n"}, "status": status}


def service(app: str = "web") -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"selector": {"app": app}}}


def endpoints_subset(ready: Sequence[str] = (), unready: Sequence[str] = ()) -> dict[str, Any]:
    sides = {"addresses": ready, "notReadyAddresses": unready}
    named = {side: [{"targetRef": {"kind": "Pod", "name": name}} for name in names] for side, names in sides.items()}
    return {"metadata": {"name": "web"}, "subsets": [named]}


def inferred_cause(story: StepRecording, step: Step) -> tuple[str, list[int]]:
    found = infer(step, story)
    assert found is not None
    return found.controller, [each.revision for each in found.causes]


def test_a_pod_that_became_unready_explains_its_endpoint() -> None:
    story = StepRecording()
    story.add(SERVICES, "web", service())
    for name in ("a", "b"):
        story.add(PODS, name, pod("True"))
    story.add(ENDPOINTS, "web", endpoints_subset(["a", "b"]), MANAGER)
    flip = story.add(PODS, "a", pod("False"))
    story.add(PODS, "b", pod("True", annotations={"nothing": "of it"}))
    written = story.add(ENDPOINTS, "web", endpoints_subset(["b"], ["a"]), MANAGER)
    found = infer(written, story)
    assert found is not None
    assert found.causes == ((flip.revision, "explains a: ready → not ready: Ready True→False"),)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((PODS, "a", None), "the pod was deleted"),
        ((PODS, "a", pod("True", deletionTimestamp="now")), "the pod's deletion was requested"),
        ((PODS, "a", pod("True", labels={"app": "other"})), "the pod's labels changed"),
        ((SERVICES, "web", service("other")), "the Service changed"),
    ],
)
def test_a_removed_endpoint_has_a_cause(change: tuple[Resource, str, dict[str, Any] | None], reason: str) -> None:
    story = StepRecording()
    story.add(SERVICES, "web", service())
    story.add(PODS, "a", pod("True"))
    story.add(ENDPOINTS, "web", endpoints_subset(["a"]), MANAGER)
    cause = story.add(*change)
    found = infer(story.add(ENDPOINTS, "web", endpoints_subset(), MANAGER), story)
    assert found is not None
    assert [each.revision for each in found.causes] == [cause.revision]
    assert found.causes[0].reason.endswith(reason)


def test_the_newest_matching_readiness_change_is_the_cause() -> None:
    story = StepRecording()
    story.add(SERVICES, "web", service())
    for ready in ("True", "False", "True", "False"):
        last = story.add(PODS, "a", pod(ready))
    story.add(ENDPOINTS, "web", endpoints_subset(["a"]), MANAGER)
    assert inferred_cause(story, story.add(ENDPOINTS, "web", endpoints_subset((), ["a"]), MANAGER)) == (
        "endpoints-controller",
        [last.revision],
    )


def test_nothing_is_inferred_for_a_field_manager_of_a_client() -> None:
    story = StepRecording()
    story.add(SERVICES, "web", service())
    story.add(PODS, "a", pod("True"))
    assert infer(story.add(ENDPOINTS, "web", endpoints_subset(["a"]), "kubectl-edit"), story) is None


def test_an_unexplained_deletion_has_no_author() -> None:
    story = StepRecording()
    story.add(PODS, "a", pod("True"))
    assert infer(story.add(PODS, "a", None, "recording"), story) is None
