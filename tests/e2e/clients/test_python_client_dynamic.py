"""Tests of the official Python client's dynamic API, which uses discovery, and of its YAML loader."""

# The client's own functions are not annotated.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, utils
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, ResourceNotFoundError
from kubernetes.watch import Watch

from tests.e2e.clients import python_client as make
from tests.e2e.serving import Server


@pytest.fixture(scope="module")
def api(server: Server) -> Iterator[client.ApiClient]:
    with make.connected(server) as api:
        yield api


@pytest.fixture
def dynamic(api: client.ApiClient, tmp_path: Path) -> DynamicClient:
    return DynamicClient(api, cache_file=str(tmp_path / "discovery.json"))


KINDS = (
    ("v1", "Service", make.service),
    ("v1", "Pod", make.pod),
    ("v1", "ConfigMap", make.config_map),
    ("apps/v1", "Deployment", make.deployment),
    ("coordination.k8s.io/v1", "Lease", make.lease),
)


@pytest.mark.parametrize(
    ("version", "kind", "new"), KINDS, ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_objects_are_created_updated_and_deleted(
    version: str, kind: str, new: Any, dynamic: DynamicClient, namespace: str
) -> None:
    resource = dynamic.resources.get(api_version=version, kind=kind)
    created = resource.create(body=new("web"), namespace=namespace)
    assert resource.get(name="web", namespace=namespace).to_dict() == created.to_dict()
    found = resource.get(namespace=namespace, label_selector="app=web", field_selector="metadata.name=web")
    assert [each.metadata.uid for each in found.items] == [created.metadata.uid]
    patch = {"metadata": {"name": "web", "annotations": {"example.com/note": "patched"}}}
    patched = resource.patch(body=patch, namespace=namespace, content_type="application/merge-patch+json")
    changed = patched.to_dict() | {}
    changed["metadata"]["annotations"] = {"example.com/note": "replaced"}
    replaced = resource.replace(body=changed, namespace=namespace)
    assert replaced.metadata.annotations["example.com/note"] == "replaced"
    with pytest.raises(ConflictError):
        resource.replace(body=changed, namespace=namespace)
    resource.delete(name="web", namespace=namespace, body={"gracePeriodSeconds": 0})
    with pytest.raises(NotFoundError):
        resource.get(name="web", namespace=namespace)


def test_all_served_kinds_can_be_listed(dynamic: DynamicClient) -> None:
    listable = {
        (each.group_version, each.kind): each
        for found in dynamic.resources
        for each in found
        if "list" in (each.verbs or ()) and not each.kind.endswith("List")
    }
    assert len(listable) > 60
    answers = {name: resource.get(limit=1).to_dict() for name, resource in listable.items()}
    assert {name: (each["apiVersion"], each["kind"]) for name, each in answers.items()} == {
        (version, kind): (version, f"{kind}List") for version, kind in listable
    }
    with pytest.raises(ResourceNotFoundError):
        dynamic.resources.get(api_version="example.com/v1", kind="Nothing")


def test_subresources_are_discovered(dynamic: DynamicClient, namespace: str) -> None:
    deployments = dynamic.resources.get(api_version="apps/v1", kind="Deployment")
    deployments.create(body=make.deployment("web"), namespace=namespace)
    merge = "application/merge-patch+json"
    scale = {"metadata": {"name": "web"}, "spec": {"replicas": 2}}
    assert deployments.scale.patch(body=scale, namespace=namespace, content_type=merge).spec.replicas == 2
    status = {"metadata": {"name": "web"}, "status": {"observedGeneration": 2}, "spec": {"replicas": 7}}
    deployments.status.patch(body=status, namespace=namespace, content_type=merge)
    read = deployments.get(name="web", namespace=namespace)
    assert (read.spec.replicas, read.status.observedGeneration) == (2, 2)


def test_an_applied_object_is_watched(dynamic: DynamicClient, namespace: str) -> None:
    services = dynamic.resources.get(api_version="v1", kind="Service")
    start = services.get(namespace=namespace).metadata.resourceVersion
    applied = services.server_side_apply(body=make.service("web"), namespace=namespace, field_manager="tests")
    assert [entry.manager for entry in applied.metadata.managedFields] == ["tests"]
    services.delete(name="web", namespace=namespace)
    watcher, seen = Watch(), []
    for event in services.watch(namespace=namespace, resource_version=start, timeout=30, watcher=watcher):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watcher.stop()
    assert seen == [("ADDED", "web"), ("DELETED", "web")]


def test_yaml_is_created_completely_or_reports_failures(api: client.ApiClient, namespace: str, tmp_path: Path) -> None:
    role = make.manifest("rbac.authorization.k8s.io/v1", "Role", "web", rules=[])
    items = {"apiVersion": "v1", "kind": "List", "items": [make.config_map("one"), make.config_map("two")]}
    documents = [make.service("web"), make.deployment("web"), role, items]
    file = tmp_path / "all.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in documents))  # JSON is also YAML
    created = utils.create_from_yaml(api, str(file), namespace=namespace)
    assert [each.metadata.name for group in created for each in group] == ["web", "web", "web", "one", "two"]
    file.write_text("\n---\n".join(json.dumps(each) for each in (make.service("web"), make.service("new"))))
    with pytest.raises(utils.FailToCreateError, match=r'services \\"web\\" already exists'):
        utils.create_from_yaml(api, str(file), namespace=namespace)
    core: make.Api = client.CoreV1Api(api)
    assert core.read_namespaced_service("new", namespace).metadata.name == "new"


def test_yaml_can_be_applied_repeatedly(api: client.ApiClient, namespace: str) -> None:
    objects = [make.deployment("web"), make.service("web")]
    first, second = (utils.create_from_yaml(api, yaml_objects=objects, namespace=namespace, apply=True) for _ in "ab")
    versions = [[each.metadata.resourceVersion for group in run for each in group] for run in (first, second)]
    assert versions[0] == versions[1]
