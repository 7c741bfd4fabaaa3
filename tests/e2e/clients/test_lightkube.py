"""Tests of lightkube, synchronous and asynchronous: create, read, list, all four patches, apply,
watch, wait, delete.
"""

# The client's types let everything be None and take fewer kinds than its functions do.
# mypy: disable-error-code="arg-type,call-overload,index,type-var,union-attr"

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from lightkube import ApiError, AsyncClient, Client
from lightkube.config.kubeconfig import KubeConfig
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec, ServicePort, ServiceSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, Pod, Service
from lightkube.types import PatchType

from tests.background import DEADLINE, background
from tests.e2e.serving import Server

LABELS = {"app": "web"}


@pytest.fixture
def config(server: Server) -> KubeConfig:
    return KubeConfig.from_file(server.kubeconfig)


@pytest.fixture
def client(config: KubeConfig, namespace: str) -> Iterator[Client]:
    with Client(config, namespace=namespace, field_manager="tests") as client:
        yield client


def meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, labels=LABELS)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=meta(name), data=data)


def service(name: str) -> Service:
    return Service(metadata=meta(name), spec=ServiceSpec(ports=[ServicePort(name="a", port=80)], selector=LABELS))


def pod_spec() -> PodSpec:
    return PodSpec(containers=[Container(name="main", image="registry.example.com/web:1")])


def names(objects: Iterator[ConfigMap]) -> list[str | None]:
    return [obj.metadata.name if obj.metadata else None for obj in objects]


def test_objects_are_created_updated_and_deleted(client: Client) -> None:
    created = client.create(config_map("web", key="one"))
    assert created.data == {"key": "one"}
    created.data["key"] = "two"
    assert client.replace(created).data == {"key": "two"}
    with pytest.raises(ApiError) as conflict:
        client.replace(created)
    assert (conflict.value.status.code, conflict.value.status.reason) == (409, "Conflict")
    with pytest.raises(ApiError) as exists:
        client.create(config_map("web"))
    assert exists.value.status.reason == "AlreadyExists"
    assert client.get(ConfigMap, "web").data == {"key": "two"}
    client.delete(ConfigMap, "web")
    with pytest.raises(ApiError) as gone:
        client.get(ConfigMap, "web")
    assert gone.value.status.details is not None
    assert (gone.value.status.code, gone.value.status.details.name) == (404, "web")


PORT_B = {"spec": {"ports": [{"name": "b", "port": 81}]}}
ADD_B = [{"op": "add", "path": "/spec/ports/-", "value": {"name": "b", "port": 81}}]


@pytest.mark.parametrize(
    ("type_", "patch", "ports"),
    [
        (PatchType.STRATEGIC, PORT_B, {80, 81}),
        (PatchType.STRATEGIC, Service(spec=ServiceSpec(ports=[ServicePort(port=80, targetPort=8080)])), {80}),
        (PatchType.MERGE, PORT_B, {81}),
        (PatchType.JSON, ADD_B, {80, 81}),
    ],
)
def test_patches_of_every_kind(client: Client, type_: PatchType, patch: object, ports: set[int]) -> None:
    client.create(service("web"))
    patched = client.patch(Service, "web", patch, patch_type=type_)
    assert {port.port for port in patched.spec.ports} == ports


def test_an_apply_owns_its_fields(client: Client) -> None:
    assert client.apply(config_map("web", a="1", b="1")).data == {"a": "1", "b": "1"}
    client.patch(ConfigMap, "web", {"data": {"c": "2"}}, patch_type=PatchType.MERGE, field_manager="other")
    assert client.apply(config_map("web", a="2")).data == {"a": "2", "c": "2"}
    with pytest.raises(ApiError) as refused:
        client.apply(config_map("web", c="3"))
    assert refused.value.status.reason == "Conflict"
    assert client.apply(config_map("web", c="3"), force=True).data == {"c": "3"}


def test_lists_are_paged_and_selected(client: Client) -> None:
    for number in range(4):
        client.create(config_map(f"web-{number}"))
    client.create(ConfigMap(metadata=ObjectMeta(name="other")))
    assert names(client.list(ConfigMap, labels={"app": ("web", "x")}, chunk_size=2)) == [f"web-{n}" for n in range(4)]
    assert names(client.list(ConfigMap, fields={"metadata.name": "web-1"})) == ["web-1"]
    assert {"web-0", "other"} <= set(names(client.list(ConfigMap, namespace="*")))
    client.deletecollection(ConfigMap)
    # A controller creates `kube-root-ca.crt` again at an unknown time.
    assert set(names(client.list(ConfigMap))) <= {"kube-root-ca.crt"}


def test_subresources(client: Client) -> None:
    template = PodTemplateSpec(metadata=ObjectMeta(labels=LABELS), spec=pod_spec())
    spec = DeploymentSpec(selector=LabelSelector(matchLabels=LABELS), template=template)
    client.create(Deployment(metadata=meta("web"), spec=spec))
    scaled = client.patch(Deployment.Scale, "web", {"spec": {"replicas": 3}}, patch_type=PatchType.MERGE)
    assert scaled.spec.replicas == 3
    client.patch(Deployment.Status, "web", {"status": {"observedGeneration": 2}}, patch_type=PatchType.MERGE)
    read = client.get(Deployment, "web")
    assert (read.spec.replicas, read.status.observedGeneration) == (3, 2)


def test_a_watch_receives_every_change(client: Client) -> None:
    listed = client.list(ConfigMap, labels=LABELS)
    assert list(listed) == []
    client.create(config_map("web", key="one"))
    client.patch(ConfigMap, "web", {"data": {"key": "two"}})
    client.delete(ConfigMap, "web")
    seen = []
    for type_, obj in client.watch(ConfigMap, labels=LABELS, resource_version=listed.resourceVersion):
        seen.append((type_, obj.data["key"]))
        if type_ == "DELETED":
            break
    assert seen == [("ADDED", "one"), ("MODIFIED", "two"), ("DELETED", "two")]


def test_wait_returns_when_a_condition_is_true(client: Client, config: KubeConfig, namespace: str) -> None:
    client.create(Pod(metadata=meta("web"), spec=pod_spec()))

    def become_ready() -> None:
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        with Client(config, namespace=namespace) as other:
            other.patch(Pod.Status, "web", {"status": status}, patch_type=PatchType.STRATEGIC)

    done = background(become_ready)
    assert client.wait(Pod, "web", for_conditions=["Ready"]).metadata.name == "web"
    done.result(DEADLINE)


def test_the_asynchronous_client_behaves_alike(config: KubeConfig, namespace: str) -> None:
    async def scenario() -> list[tuple[str, str | None]]:
        client = AsyncClient(config, namespace=namespace)
        try:
            await client.create(service("web"))
            found = client.list(Service)
            assert [obj.metadata.name async for obj in found] == ["web"]
            await client.delete(Service, "web")
            seen = []
            async for type_, obj in client.watch(Service, resource_version=found.resourceVersion):
                seen.append((type_, obj.metadata.name))
                break
            return seen
        finally:
            await client.close()

    assert asyncio.run(scenario()) == [("DELETED", "web")]


def test_a_namespace_is_created_and_deleted(config: KubeConfig) -> None:
    with Client(config) as client:
        client.create(Namespace(metadata=meta("short-lived")))
        client.delete(Namespace, "short-lived")
        with pytest.raises(ApiError) as refused:
            client.create(config_map("late"), namespace="short-lived")
    assert refused.value.status.code in (403, 404)
