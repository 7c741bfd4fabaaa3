from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.operations import Answer, Await, Operation, Target
from ctrlmgr.engine.request_options import Body, WriteOptions
from ctrlmgr.errors import TooManyRequests
from tests.engine.stage import REQUESTER, Response, Stage

PODS = "/api/v1/namespaces/shop/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"
BUDGETS = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
CONTAINERS = [{"name": "c", "image": "example.invalid/c:1"}]


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.namespace("shop")
    return stage


def create(stage: Stage, path: str, name: str, **rest: Any) -> dict[str, Any]:
    response = stage.send("POST", path, {"metadata": {"name": name, **rest.pop("metadata", {})}, **rest})
    assert response.code == 201, response.body
    created: dict[str, Any] = response.body
    return created


def deployment(stage: Stage) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
    return create(stage, DEPLOYMENTS, "web", spec={"replicas": 2, "selector": selector, "template": template})


def test_a_scale_shows_the_replicas_of_its_object(stage: Stage) -> None:
    created = deployment(stage)["metadata"]
    scale = stage.send("GET", f"{DEPLOYMENTS}/web/scale")
    shown = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    assert scale == Response(
        200,
        {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {field: created[field] for field in shown},
            "spec": {"replicas": 2},
            "status": {"replicas": 0, "selector": "!a,app=web"},
        },
    )
    assert stage.send("GET", f"{DEPLOYMENTS}/none/scale").message == 'deployments.apps "none" not found'


@pytest.mark.parametrize(
    ("method", "media_type", "body"),
    [
        ("PUT", "application/json", {"metadata": {"name": "web"}, "spec": {"replicas": 5}}),
        ("PATCH", MERGE, {"spec": {"replicas": 5}}),
        ("PATCH", "application/json-patch+json", [{"op": "replace", "path": "/spec/replicas", "value": 5}]),
    ],
)
def test_writing_a_scale_changes_only_the_replicas(stage: Stage, method: str, media_type: str, body: Any) -> None:
    before = deployment(stage)
    scaled = stage.send(method, f"{DEPLOYMENTS}/web/scale", body, media_type=media_type)
    assert (scaled.code, scaled.body["kind"], scaled.body["spec"]) == (200, "Scale", {"replicas": 5})
    after = stage.send("GET", f"{DEPLOYMENTS}/web").body
    assert after["spec"] == {**before["spec"], "replicas": 5}
    assert after["metadata"]["resourceVersion"] == scaled.body["metadata"]["resourceVersion"] == "3"
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    by = [(entry["manager"], entry.get("subresource")) for entry in after["metadata"]["managedFields"]]
    assert by == [("kubectl", "scale"), ("kubectl", None)]  # conditions without a time are sorted first


def test_a_forced_apply_of_a_scale_takes_managed_fields(stage: Stage) -> None:
    deployment(stage)
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 5}}
    path, query = f"{DEPLOYMENTS}/web/scale", {"fieldManager": "hpa"}
    refused = stage.send("PATCH", path, body, media_type=APPLY, query=query)
    assert (refused.code, refused.message) == (
        409,
        'Apply failed with 1 conflict: conflict with "kubectl" using autoscaling/v1: .spec.replicas',
    )
    assert stage.send("PATCH", path, body, media_type=APPLY, query={**query, "force": "1"}).code == 200
    managed = stage.send("GET", f"{DEPLOYMENTS}/web").body["metadata"]["managedFields"]
    assert ("hpa", "Apply", "scale") in [
        (each["manager"], each["operation"], each.get("subresource")) for each in managed
    ]


@pytest.mark.parametrize(
    ("metadata", "replicas", "code", "message"),
    [
        (
            {"name": "web"},
            -1,
            422,
            'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must',
        ),
        ({"name": "db"}, 1, 400, "the name of the object (db) does not match the name on the URL (web)"),
        (
            {"name": "web", "resourceVersion": "1"},
            1,
            409,
            'Operation cannot be fulfilled on deployments.apps "web": the',
        ),
        ({"name": "web", "uid": "x"}, 1, 409, 'Operation cannot be fulfilled on deployments.apps "web": Storage'),
    ],
)
def test_invalid_scales_are_refused(
    stage: Stage, metadata: dict[str, str], replicas: int, code: int, message: str
) -> None:
    deployment(stage)
    refused = stage.send("PUT", f"{DEPLOYMENTS}/web/scale", {"metadata": metadata, "spec": {"replicas": replicas}})
    assert refused.code == code
    assert refused.message.startswith(message)


def test_a_replication_controllers_selector_is_a_map(stage: Stage) -> None:
    template = {"metadata": {"labels": {"b": "2", "a": "1"}}, "spec": {"containers": CONTAINERS}}
    path = "/api/v1/namespaces/shop/replicationcontrollers"
    create(stage, path, "rc", spec={"replicas": 0, "selector": {"b": "2", "a": "1"}, "template": template})
    assert stage.send("GET", f"{path}/rc/scale").body["status"] == {"replicas": 0, "selector": "a=1,b=2"}


def pod(stage: Stage, **rest: Any) -> dict[str, Any]:
    return create(stage, PODS, "p", spec={"containers": CONTAINERS, **rest})


@pytest.mark.parametrize("path", [f"{PODS}/p/binding", "/api/v1/namespaces/shop/bindings"])
def test_a_binding_assigns_a_pod_to_a_node(stage: Stage, path: str) -> None:
    pod(stage)
    body = {"metadata": {"name": "p", "annotations": {"by": "me"}}, "target": {"kind": "Node", "name": "n"}}
    bound = stage.send("POST", path, body)
    assert bound == Response(
        201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, ()
    )
    found = stage.send("GET", f"{PODS}/p").body
    assert (found["spec"]["nodeName"], found["metadata"]["annotations"]) == ("n", {"by": "me"})
    assert found["metadata"]["generation"] == 1
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    again = stage.send("POST", path, body)
    assert (again.code, again.message) == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"',
    )


def test_invalid_bindings_are_refused(stage: Stage) -> None:
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    assert stage.send("POST", f"{PODS}/p/binding", body).message == 'pods "p" not found'
    pod(stage)
    head = stage.log.head()
    assert stage.send("POST", f"{PODS}/p/binding", body, query={"dryRun": "All"}).code == 201
    assert stage.send("GET", f"{PODS}/p/binding").code == 405
    assert stage.send("POST", f"{PODS}/p/binding", {**body, "x": 1}, query={"fieldValidation": "Strict"}).code == 400
    assert stage.log.head() == head
    stage.send("DELETE", "/api/v1/namespaces/shop")
    assert stage.send("POST", f"{PODS}/p/binding", body).code == 403


EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}


def budget(stage: Stage, allowed: int) -> None:
    created = create(stage, BUDGETS, "b", spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}})
    status = {
        "observedGeneration": created["metadata"]["generation"],
        "disruptionsAllowed": allowed,
        "currentHealthy": 1 + allowed,
        "desiredHealthy": 1,
        "expectedPods": 2,
    }
    response = stage.send("PATCH", f"{BUDGETS}/b/status", {"status": status}, media_type=MERGE)
    assert response.code == 200, response.body


def running(stage: Stage) -> None:
    pod_body = {"containers": CONTAINERS, "nodeName": "n"}
    create(stage, PODS, "p", metadata={"labels": {"app": "web"}}, spec=pod_body)
    ready = {"type": "Ready", "status": "True"}
    status = {"status": {"phase": "Running", "conditions": [ready]}}
    assert stage.send("PATCH", f"{PODS}/p/status", status, media_type=MERGE).code == 200


def test_an_eviction_deletes_a_pod_with_a_condition(stage: Stage) -> None:
    running(stage)
    evicted = stage.send("POST", f"{PODS}/p/eviction", EVICTION)
    assert (evicted.code, evicted.body["status"], evicted.body["code"]) == (201, "Success", 201)
    found = stage.send("GET", f"{PODS}/p").body
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    assert ("DisruptionTarget", "True") in [(each["type"], each["status"]) for each in found["status"]["conditions"]]


def test_an_eviction_updates_its_budget_in_the_same_append(stage: Stage) -> None:
    running(stage)
    budget(stage, 1)
    head = stage.log.head().revision
    assert stage.send("POST", f"{PODS}/p/eviction", EVICTION, query={"dryRun": "All"}).code == 201
    assert stage.log.head().revision == head
    body = {**EVICTION, "deleteOptions": {"gracePeriodSeconds": 0}}
    assert stage.send("POST", f"{PODS}/p/eviction", body).code == 201
    events = stage.log.events_after(head)
    assert [f"{event.type.name} {event.resource.plural}" for event in events] == [
        "MODIFIED pods",
        "DELETED pods",
        "MODIFIED poddisruptionbudgets",
    ]
    assert len({event.append_id for event in events}) == 1
    assert stage.send("GET", f"{BUDGETS}/b").body["status"]["disruptionsAllowed"] == 0


def test_invalid_evictions_are_refused(stage: Stage) -> None:
    assert stage.send("POST", f"{PODS}/p/eviction", EVICTION).message == 'pods "p" not found'
    running(stage)
    other = {**EVICTION, "metadata": {"name": "q"}}
    assert stage.send("POST", f"{PODS}/p/eviction", other).code == 400
    mixed = {**EVICTION, "deleteOptions": {"dryRun": ["Some"]}}
    assert stage.send("POST", f"{PODS}/p/eviction", mixed, query={"dryRun": "All"}).code == 500
    budget(stage, 0)
    head = stage.log.head()
    refused = stage.send("POST", f"{PODS}/p/eviction", EVICTION)
    assert (refused.code, refused.message) == (
        429,
        "Cannot evict pod as it would violate the pod's disruption budget.",
    )
    assert refused.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    stale = {**EVICTION, "deleteOptions": {"preconditions": {"resourceVersion": "1"}}}
    assert stage.send("POST", f"{PODS}/p/eviction", stale).code in (409, 429)
    assert stage.log.head() == head


def test_a_refused_eviction_waits_until_earlier_ones_are_counted(stage: Stage) -> None:
    running(stage)
    budget(stage, 0)
    uncounted = {"status": {"disruptedPods": {"gone": "2026-01-02T03:04:05Z"}}}
    assert stage.send("PATCH", f"{BUDGETS}/b/status", uncounted, media_type=MERGE).code == 200
    counted = {"status": {"disruptedPods": None, "currentHealthy": 0}}

    def driven(operation: Operation[Answer]) -> Operation[Answer]:
        """Run the disruption controller while the eviction request waits."""
        command = next(operation)
        while True:
            if isinstance(command, Await):
                assert stage.send("PATCH", f"{BUDGETS}/b/status", counted, media_type=MERGE).code == 200
            sent = yield command
            command = operation.send(sent)

    pods = stage.kinds.find("", "v1", "pods")
    assert pods is not None
    target = Target(pods, "shop", "p", "eviction")
    body = Body("application/json", msgspec.json.encode(EVICTION))
    with pytest.raises(TooManyRequests) as refused:
        stage.driver.run(driven(stage.engine.create(target, body, WriteOptions(), REQUESTER)))
    assert refused.value.details is not None
    (cause,) = refused.value.details.causes
    assert cause.message == "The disruption budget b needs 1 healthy pods and has 0 currently"


def test_the_wait_of_a_refused_eviction_is_limited(stage: Stage) -> None:
    running(stage)
    budget(stage, 0)
    uncounted = {"status": {"disruptedPods": {"gone": "2026-01-02T03:04:05Z"}}}
    assert stage.send("PATCH", f"{BUDGETS}/b/status", uncounted, media_type=MERGE).code == 200
    assert stage.send("POST", f"{PODS}/p/eviction", EVICTION).code == 429


class SpecRecorder(Plugin):
    """A plugin that records the specs of pods whose status is written."""

    name: ClassVar[str] = "Seeing"

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return resource.plural == "pods" and subresource == "status"

    def admit(self, attributes: Attributes) -> None:
        self.seen.append(dict(attributes.fields["spec"]))


def test_a_written_status_is_stored_with_defaults_of_status_and_spec() -> None:
    plugin = SpecRecorder()
    stage = Stage(plugins=[plugin])
    stage.namespace("shop")
    stage.send("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "default"}})
    created = create(stage, PODS, "web", spec={"containers": CONTAINERS})
    patched = stage.send("PATCH", f"{PODS}/web/status", {"status": {"podIP": "10.0.0.1"}}, media_type=MERGE)
    assert patched.body["status"]["podIPs"] == [{"ip": "10.0.0.1"}]
    put = {"metadata": {"name": "web"}, "spec": {"containers": CONTAINERS}, "status": {"podIP": "10.0.0.2"}}
    replaced = stage.send("PUT", f"{PODS}/web/status", put)
    assert replaced.body["status"]["podIPs"] == [{"ip": "10.0.0.2"}]
    assert patched.body["spec"] == replaced.body["spec"] == created["spec"]
    assert [each["dnsPolicy"] for each in plugin.seen] == ["ClusterFirst"] * 2
