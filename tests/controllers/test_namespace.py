"""Tests of the namespace controller with the real engine: which objects it deletes, in which order, and the conditions
it sets.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.namespace import DESCRIPTOR, Options
from ctrlmgr.controllers.namespace.controller import build
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.eventlog import EventType
from ctrlmgr.eventlog.event import Cause, Fence
from ctrlmgr.informer import Informers
from tests.authorization.bootstrap.controllers import rights_of
from tests.controllers.stage_context import HandContext
from tests.engine.stage import Stage

GRACE = 5.0
CONDITIONS = (
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
)


class Cluster:
    """A cluster with the namespace controller, which tests run step by step."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.informers = Informers(self.stage.log, self.stage.feed, clock=self.stage.clock)
        user = DESCRIPTOR.as_user
        client = EngineClient(self.stage.engine, self._run, Requester(user.name), rights=rights_of(user))
        context = HandContext(
            informers=self.informers,
            event_log=self.stage.log,
            engine=self.stage.engine,
            clock=self.stage.clock,
            random=Random(1),
            writer=lambda descriptor: client,
        )
        self.controller = build(context, Options(namespace_deletion_grace=GRACE))
        self.informers.sync()
        for name in ("doomed", "other"):
            self.stage.namespace(name)

    def _run(self, operation: Operation[Any], cause: Cause | None = None, fence: Fence | None = None) -> Any:
        return self.stage.driver.run(operation)

    def create(self, plural: str, kind: str, name: str, namespace: str = "doomed", **fields: Any) -> None:
        metadata = {"name": name, **fields.pop("metadata", {})}
        answer = self.stage.send("POST", f"/api/v1/namespaces/{namespace}/{plural}", {"metadata": metadata, **fields})
        assert answer.code == 201, answer.body

    def config_map(self, name: str, namespace: str = "doomed", **metadata: Any) -> None:
        self.create("configmaps", "ConfigMap", name, namespace, metadata=metadata)

    def pod(self, name: str, node: str = "", grace: int = 30, **metadata: Any) -> None:
        spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": grace}
        self.create("pods", "Pod", name, metadata=metadata, spec={**spec, **({"nodeName": node} if node else {})})

    def delete(self, path: str, body: Any = None) -> int:
        return self.stage.send("DELETE", f"/api/v1/namespaces/{path}", body).code

    def get(self, path: str) -> Any:
        answer = self.stage.send("GET", f"/api/v1/namespaces/{path}")
        return answer.body if answer.code == 200 else None

    def settle(self) -> None:
        """Run the controller until no work is due."""
        for _ in range(50):
            while self.informers.step():
                pass
            if not self.controller.process_next(timeout=0):
                return
        pytest.fail("it does not become idle")

    def pass_by(self, seconds: float) -> None:
        self.stage.clock.step(seconds)
        self.settle()

    def conditions(self) -> dict[str, tuple[str, str, str]]:
        namespace = self.get("doomed")
        found = namespace["status"].get("conditions", [])
        return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}

    def doom(self) -> None:
        """Delete the namespace, and advance the clock beyond the grace period."""
        assert self.delete("doomed") == 200
        self.settle()
        self.pass_by(GRACE)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_namespace_is_deleted_with_only_its_content(cluster: Cluster) -> None:
    cluster.config_map("a")
    cluster.create("services", "Service", "s", spec={"ports": [{"port": 80}]})
    cluster.config_map("kept", "other")
    before = cluster.stage.log.head().revision
    cluster.doom()
    assert cluster.get("doomed") is None
    assert cluster.get("other/configmaps/kept") is not None
    touched = {(event.resource.plural, event.key.namespace) for event in cluster.stage.log.events_after(before)}
    assert {namespace for _, namespace in touched} == {"", "doomed"}
    address = [event for event in cluster.stage.log.events_after(before) if event.resource.plural == "ipaddresses"]
    assert [event.type for event in address] == [EventType.DELETED]  # released together with its Service


def test_an_empty_namespace_is_deleted(cluster: Cluster) -> None:
    cluster.doom()
    assert cluster.get("doomed") is None


def test_a_new_deletion_waits_for_the_grace_period(cluster: Cluster) -> None:
    cluster.config_map("a")
    cluster.delete("doomed")
    cluster.settle()
    cluster.pass_by(GRACE - 0.1)
    assert cluster.get("doomed/configmaps/a")["metadata"].get("deletionTimestamp") is None
    assert cluster.conditions() == {}
    cluster.pass_by(0.2)
    assert cluster.get("doomed") is None


def test_the_grace_period_begins_with_the_deletion(cluster: Cluster) -> None:
    cluster.stage.clock.step(0.001471)
    begun = cluster.stage.clock.monotonic()
    cluster.delete("doomed")
    cluster.settle()
    cluster.stage.clock.step(GRACE)
    assert begun + GRACE > cluster.stage.clock.monotonic(), "floats add up to less than what has passed"
    cluster.settle()
    assert cluster.get("doomed") is None


def test_an_active_namespace_is_unchanged(cluster: Cluster) -> None:
    cluster.config_map("a")
    head = cluster.stage.log.head().revision
    cluster.settle()
    cluster.pass_by(60)
    assert cluster.stage.log.head().revision == head


def test_a_finalizer_is_awaited_and_reported(cluster: Cluster) -> None:
    cluster.config_map("free")
    cluster.config_map("held", finalizers=["example.com/hold"])
    cluster.doom()
    assert cluster.get("doomed/configmaps/free") is None
    assert cluster.conditions() == {
        CONDITIONS[0]: ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        CONDITIONS[1]: ("False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        CONDITIONS[2]: (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        CONDITIONS[3]: (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        CONDITIONS[4]: (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        ),
    }
    head = cluster.stage.log.head().revision
    cluster.pass_by(600)
    assert cluster.stage.log.head().revision == head  # an unchanged condition is not written again
    answer = cluster.stage.send(
        "PATCH",
        "/api/v1/namespaces/doomed/configmaps/held",
        {"metadata": {"finalizers": None}},
        media_type="application/merge-patch+json",
    )
    assert answer.code == 200
    cluster.settle()
    assert cluster.get("doomed") is None


def test_pods_are_deleted_first(cluster: Cluster) -> None:
    cluster.config_map("a")
    cluster.pod("p", node="node-1", grace=30)
    cluster.doom()
    assert cluster.get("doomed/pods/p")["metadata"]["deletionTimestamp"]
    assert cluster.get("doomed/configmaps/a")["metadata"].get("deletionTimestamp") is None
    assert cluster.conditions()[CONDITIONS[2]][:2] == ("False", "ContentDeleted")
    # this is also Kubernetes' state at this time
    assert cluster.conditions()[CONDITIONS[3]][:2] == ("False", "ContentRemoved")
    assert cluster.delete("doomed/pods/p", {"gracePeriodSeconds": 0}) == 200
    cluster.settle()
    assert cluster.get("doomed") is None


def test_a_pod_past_its_grace_period_is_reported(cluster: Cluster) -> None:
    cluster.pod("p", node="node-1", grace=8)
    cluster.doom()
    assert cluster.conditions()[CONDITIONS[2]][0] == "False"
    cluster.pass_by(4)
    assert cluster.conditions()[CONDITIONS[2]] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: doomed "
        "for gvr: /v1, Resource=pods",
    )


def test_a_pod_without_a_node_is_not_awaited(cluster: Cluster) -> None:
    cluster.pod("p")
    cluster.doom()
    assert cluster.get("doomed") is None


def test_a_pods_finalizer_is_awaited_without_a_report(cluster: Cluster) -> None:
    cluster.pod("p", finalizers=["example.com/pod"])
    cluster.doom()
    assert {status for status, _, _ in cluster.conditions().values()} == {"False"}
    assert cluster.get("doomed/pods/p") is not None


def test_a_finalizer_of_the_namespace_itself_outlives_its_content(cluster: Cluster) -> None:
    answer = cluster.stage.send(
        "PATCH",
        "/api/v1/namespaces/doomed",
        {"metadata": {"finalizers": ["example.com/block"]}},
        media_type="application/merge-patch+json",
    )
    assert answer.code == 200
    cluster.config_map("a")
    cluster.doom()
    namespace = cluster.get("doomed")
    assert namespace["spec"].get("finalizers") is None
    assert set(cluster.conditions()) == set(CONDITIONS)
    assert cluster.get("doomed/configmaps/a") is None


def test_recreated_namespace_keeps_its_content(cluster: Cluster) -> None:
    cluster.doom()
    cluster.stage.namespace("doomed")
    cluster.config_map("fresh")
    cluster.settle()
    cluster.pass_by(60)
    assert cluster.get("doomed/configmaps/fresh") is not None


def test_a_thousand_objects_of_many_kinds_are_deleted(cluster: Cluster) -> None:
    for number in range(250):
        cluster.config_map(f"c{number}")
        cluster.create("secrets", "Secret", f"s{number}")
        cluster.create("endpoints", "Endpoints", f"e{number}")
        cluster.create("serviceaccounts", "ServiceAccount", f"a{number}")
    cluster.doom()
    assert cluster.get("doomed") is None
    left = cluster.stage.log.snapshot().objects
    assert not [obj for obj in left if obj.namespace == "doomed"]
