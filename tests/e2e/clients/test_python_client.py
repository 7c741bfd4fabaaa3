"""Tests of the official Python client's typed API, whose strict models must accept the answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.e2e.clients import python_client as make
from tests.e2e.serving import Server, until

JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


@pytest.fixture(scope="module")
def api(server: Server) -> Iterator[client.ApiClient]:
    with make.connected(server) as api:
        yield api


@pytest.fixture
def core(api: client.ApiClient) -> make.Api:
    return client.CoreV1Api(api)


@pytest.fixture
def apps(api: client.ApiClient) -> make.Api:
    return client.AppsV1Api(api)


class TypedKind(NamedTuple):
    """A kind in the official client: its API class, its name in method names, its model, and a function that creates an
    object.
    """

    api: type
    name: str
    model: Any
    make: Callable[[str], dict[str, Any]]
    deleted: str
    """The kind of the response to a deletion."""


TYPED = (
    TypedKind(client.CoreV1Api, "service", client.V1Service, make.service, "Service"),
    TypedKind(client.CoreV1Api, "pod", client.V1Pod, make.pod, "Pod"),
    TypedKind(client.CoreV1Api, "config_map", client.V1ConfigMap, make.config_map, "Status"),
    TypedKind(client.AppsV1Api, "deployment", client.V1Deployment, make.deployment, "Status"),
    TypedKind(client.CoordinationV1Api, "lease", client.V1Lease, make.lease, "Status"),
)


@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: typed.name)
def test_objects_are_created_updated_and_deleted(typed: TypedKind, api: client.ApiClient, namespace: str) -> None:
    group = typed.api(api)

    def call(verb: str, *arguments: Any, **more: Any) -> Any:
        return getattr(group, f"{verb}_namespaced_{typed.name}")(*arguments, **more)

    created = call("create", namespace, typed.make("web"))
    assert isinstance(created, typed.model)
    assert call("read", "web", namespace).to_dict() == created.to_dict()
    listed = call("list", namespace, label_selector="app in (web, other),!gone")
    assert [each.metadata.uid for each in listed.items] == [created.metadata.uid]
    assert created.metadata.uid not in [
        each.metadata.uid for each in call("list", namespace, label_selector="app!=web").items
    ]

    patched = call("patch", "web", namespace, {"metadata": {"labels": {"tier": "front"}}})
    assert patched.metadata.labels == {**make.LABELS, "tier": "front"}
    assert int(patched.metadata.resource_version) > int(created.metadata.resource_version)
    patched.metadata.annotations = {"example.com/note": "replaced"}
    replaced = call("replace", "web", namespace, patched)
    assert replaced.metadata.annotations == {"example.com/note": "replaced"}
    with pytest.raises(ApiException) as conflict:
        call("replace", "web", namespace, patched)
    assert (conflict.value.status, conflict.value.reason) == (409, "Conflict")

    answer = call("delete", "web", namespace)
    assert (answer["kind"] if isinstance(answer, dict) else answer.kind) == typed.deleted
    with pytest.raises(ApiException) as gone:
        call("read", "web", namespace)
    assert gone.value.status == 404


def test_an_error_has_the_bytes_of_kubernetes(core: make.Api, namespace: str) -> None:
    with pytest.raises(ApiException) as refused:
        core.read_namespaced_service("absent", namespace)
    assert refused.value.body == (
        '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        '"message":"services \\"absent\\" not found","reason":"NotFound",'
        '"details":{"name":"absent","kind":"services"},"code":404}\n'
    )


def test_a_refusal_names_every_field(core: make.Api, namespace: str) -> None:
    wrong = make.service("web")
    wrong["spec"]["ports"] = [{"port": 70000, "targetPort": "http", "protocol": "ICMP"}]
    with pytest.raises(ApiException) as refused:
        core.create_namespaced_service(namespace, wrong)
    causes = json.loads(refused.value.body or "")["details"]["causes"]
    assert refused.value.status == 422
    assert {(each["reason"], each["field"]) for each in causes} == {
        ("FieldValueInvalid", "spec.ports[0].port"),
        ("FieldValueNotSupported", "spec.ports[0].protocol"),
    }


def test_a_namespace_is_deleted_with_its_content(core: make.Api) -> None:
    created = core.create_namespace(make.manifest("v1", "Namespace", "leaving"))
    assert (created.status.phase, created.spec.finalizers) == ("Active", ["kubernetes"])
    core.create_namespaced_config_map("leaving", make.config_map("web"))
    core.delete_namespace("leaving")

    until(lambda: make.is_absent(core.read_namespace, "leaving"))
    assert core.list_config_map_for_all_namespaces(field_selector="metadata.namespace=leaving").items == []


PORTS = "/spec/ports"
PORT = f"{PORTS}/0/port"
PATCHES: tuple[tuple[str, Any, list[int]], ...] = (
    (JSON_PATCH, [{"op": "add", "path": f"{PORTS}/-", "value": {"name": "b", "port": 81}}], [80, 81]),
    (JSON_PATCH, [{"op": "test", "path": PORT, "value": 80}, {"op": "replace", "path": PORT, "value": 8}], [8]),
    (MERGE_PATCH, {"spec": {"ports": [{"name": "b", "port": 81}]}}, [81]),
    (STRATEGIC, {"spec": {"ports": [{"name": "b", "port": 81}]}}, [81, 80]),
    (STRATEGIC, {"spec": {"ports": [{"$patch": "replace"}, {"name": "c", "port": 82}]}}, [82]),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "patch", "ports"), PATCHES)
def test_patches_of_every_kind(core: make.Api, namespace: str, kind: str, patch: Any, ports: list[int]) -> None:
    core.create_namespaced_service(namespace, make.service("web"))
    patched = core.patch_namespaced_service("web", namespace, patch, _content_type=kind)
    assert [port.port for port in patched.spec.ports] == ports
    assert core.read_namespaced_service("web", namespace).to_dict() == patched.to_dict()


def test_server_side_apply_owns_its_fields(core: make.Api, namespace: str) -> None:
    def apply(manager: str, data: dict[str, str], **more: Any) -> Any:
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": data}
        return core.patch_namespaced_config_map(
            "web", namespace, applied, field_manager=manager, _content_type=APPLY, **more
        )

    assert apply("first", {"a": "1", "b": "1"}).data == {"a": "1", "b": "1"}
    assert apply("second", {"c": "2"}).data == {"a": "1", "b": "1", "c": "2"}
    assert apply("first", {"a": "1"}).data == {"a": "1", "c": "2"}, "what a manager no longer applies is gone"
    with pytest.raises(ApiException) as refused:
        apply("second", {"a": "2", "c": "2"})
    assert refused.value.status == 409
    cause = json.loads(refused.value.body or "")["details"]["causes"][0]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.a")
    forced = apply("second", {"a": "2", "c": "2"}, force=True)
    assert forced.data == {"a": "2", "c": "2"}
    owned = {entry.manager: entry.operation for entry in forced.metadata.managed_fields}
    assert owned == {"second": "Apply"}


def test_pages_of_a_list_have_one_revision(core: make.Api, namespace: str) -> None:
    for number in range(5):
        core.create_namespaced_config_map(namespace, make.config_map(f"web-{number}"))
    page = core.list_namespaced_config_map(namespace, limit=2, label_selector="app")
    names, versions = [each.metadata.name for each in page.items], {page.metadata.resource_version}
    core.create_namespaced_config_map(namespace, make.config_map("web-9"))
    while page.metadata.var_continue:
        page = core.list_namespaced_config_map(
            namespace, limit=2, label_selector="app", _continue=page.metadata.var_continue
        )
        names += [each.metadata.name for each in page.items]
        versions.add(page.metadata.resource_version)
    assert names == [f"web-{number}" for number in range(5)]
    assert len(versions) == 1


def test_a_collection_is_deleted_by_its_selector(core: make.Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, make.config_map("goes"))
    stays = make.config_map("stays")
    stays["metadata"]["labels"] = {"app": "other"}
    core.create_namespaced_config_map(namespace, stays)
    core.delete_collection_namespaced_config_map(namespace, label_selector="app=web")
    left = [each.metadata.name for each in core.list_namespaced_config_map(namespace).items]
    assert left == ["kube-root-ca.crt", "stays"]


def test_a_dry_run_stores_nothing(core: make.Api, namespace: str) -> None:
    created = core.create_namespaced_service(namespace, make.service("web"), dry_run="All")
    assert created.metadata.uid
    assert core.list_namespaced_service(namespace).items == []


def test_finalizers_and_preconditions_delay_a_deletion(core: make.Api, namespace: str) -> None:
    held = make.config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    uid = core.create_namespaced_config_map(namespace, held).metadata.uid
    with pytest.raises(ApiException) as refused:
        core.delete_namespaced_config_map("held", namespace, body={"preconditions": {"uid": "another"}})
    assert refused.value.status == 409
    core.delete_namespaced_config_map("held", namespace, body={"preconditions": {"uid": uid}})
    assert core.read_namespaced_config_map("held", namespace).metadata.deletion_timestamp
    core.patch_namespaced_config_map("held", namespace, {"metadata": {"finalizers": None}})
    assert core.list_namespaced_config_map(namespace, field_selector="metadata.name=held").items == []


def test_a_deployment_scales_and_reports_its_status(apps: make.Api, namespace: str) -> None:
    apps.create_namespaced_deployment(namespace, make.deployment("web"))
    scaled = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    assert (scaled.spec.replicas, scaled.status.replicas) == (3, 0)
    read = apps.read_namespaced_deployment("web", namespace)
    assert (read.spec.replicas, read.metadata.generation) == (3, 2)
    read.status.observed_generation = 2
    read.spec.replicas = 9
    apps.replace_namespaced_deployment_status("web", namespace, read)
    read = apps.read_namespaced_deployment("web", namespace)
    assert (read.spec.replicas, read.status.observed_generation, read.metadata.generation) == (3, 2, 2)


def test_a_pod_is_bound_to_a_node_and_evicted(core: make.Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, make.pod("web"))
    binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "node-1"}}
    # Without decoding: the server answers a Binding with a Status.
    core.create_namespaced_pod_binding("web", namespace, binding, _preload_content=False).read()
    bound = core.list_namespaced_pod(namespace, field_selector="spec.nodeName=node-1").items
    assert [each.metadata.name for each in bound] == ["web"]
    core.patch_namespaced_pod_status("web", namespace, {"status": {"phase": "Running", "podIP": "10.0.0.1"}})
    assert (
        core.list_namespaced_pod(namespace, field_selector="status.phase=Running").items[0].status.pod_ip == "10.0.0.1"
    )
    core.create_namespaced_pod_eviction("web", namespace, {"metadata": {"name": "web"}})
    evicted = core.read_namespaced_pod("web", namespace)
    assert (evicted.metadata.deletion_grace_period_seconds, bool(evicted.metadata.deletion_timestamp)) == (30, True)


def test_events_of_both_groups_are_the_same_objects(api: client.ApiClient, core: make.Api, namespace: str) -> None:
    event = make.manifest("events.k8s.io/v1", "Event", "web.1", reason="Tried", note="it works", type="Normal")
    event |= {"eventTime": "2026-01-02T03:04:05.678901Z", "action": "Try"}
    event |= {"reportingController": "example.com/tests", "reportingInstance": "tests-1"}
    event["regarding"] = {"apiVersion": "v1", "kind": "Service", "name": "web", "namespace": namespace}
    events: make.Api = client.EventsV1Api(api)
    newer = events.create_namespaced_event(namespace, event)
    found = core.list_namespaced_event(namespace, field_selector="involvedObject.name=web,reason=Tried").items
    assert [(each.message, each.event_time) for each in found] == [("it works", newer.event_time)]


def test_discovery_lists_all_served_kinds(api: client.ApiClient, core: make.Api) -> None:
    assert client.VersionApi(api).get_code().major == "1"
    assert client.CoreApi(api).get_api_versions().versions == ["v1"]
    apis: make.Api = client.ApisApi(api)
    groups = {group.name: group.preferred_version.version for group in apis.get_api_versions().groups}
    assert groups.items() >= {"apps": "v1", "coordination.k8s.io": "v1", "discovery.k8s.io": "v1"}.items()
    resources = {each.name: each for each in core.get_api_resources().resources}
    assert resources["services"].short_names == ["svc"]
    assert resources["services/status"].verbs == ["get", "patch", "update"]


def test_access_reviews_name_the_user_and_the_verdict(api: client.ApiClient) -> None:
    authentication: make.Api = client.AuthenticationV1Api(api)
    review = authentication.create_self_subject_review({})
    assert review.status.user_info.username == "system:admin"
    asked = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "services"}}}
    authorization: make.Api = client.AuthorizationV1Api(api)
    assert authorization.create_self_subject_access_review(asked).status.allowed
