"""Tests of custom objects with clients: the official Python client, lightkube, and a conversion
webhook during a watch.
"""

# The clients' own functions are not annotated, or let everything be None.
# mypy: disable-error-code="no-untyped-call,arg-type,index,union-attr"

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.watch import Watch
from lightkube import Client
from lightkube.config.kubeconfig import KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.types import PatchType

from tests.e2e.clients import python_client as make
from tests.e2e.serving import DEADLINE, Server, until
from tests.e2e.widgets import Hook, defined, definition, version


@pytest.fixture
def group(server: Server, namespace: str) -> Iterator[str]:
    """The name of a new API group with a kind Widget."""
    group = f"{namespace}.example.com"
    with defined(server, definition(group)):
        yield group


@pytest.fixture
def api(server: Server) -> Iterator[client.ApiClient]:
    with make.connected(server) as api:
        yield api


def widget(group: str, name: str = "a", api: str = "v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/{api}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def test_the_official_client_handles_custom_objects(api: client.ApiClient, group: str, namespace: str) -> None:
    custom, where = client.CustomObjectsApi(api), (group, "v1", namespace, "widgets")
    custom.create_namespaced_custom_object(*where, widget(group, color="red"))
    assert custom.get_namespaced_custom_object(*where, "a")["spec"] == {"color": "red", "size": 1}
    custom.patch_namespaced_custom_object(*where, "a", {"spec": {"color": "blue"}})
    custom.patch_namespaced_custom_object_status(*where, "a", {"status": {"replicas": 1}})
    custom.patch_namespaced_custom_object_scale(*where, "a", {"spec": {"replicas": 3}})
    found = custom.list_cluster_custom_object(group, "v1", "widgets", field_selector="spec.color=blue")["items"]
    assert [(each["spec"], each["status"]) for each in found] == [({"color": "blue", "size": 3}, {"replicas": 1})]
    replaced = {**found[0], "spec": {"size": 5}}
    assert custom.replace_namespaced_custom_object(*where, "a", replaced)["metadata"]["generation"] == 4
    with pytest.raises(ApiException) as refused:
        custom.create_namespaced_custom_object(*where, widget(group, "b", size="many"))
    assert json.loads(refused.value.body)["details"]["causes"][0]["field"] == "spec.size"
    custom.delete_namespaced_custom_object(*where, "a")
    assert custom.list_namespaced_custom_object(*where)["items"] == []


def test_lightkube_handles_custom_objects(server: Server, group: str, namespace: str) -> None:
    kind = create_namespaced_resource(group, "v1", "Widget", "widgets")
    with Client(KubeConfig.from_file(server.kubeconfig), namespace=namespace, field_manager="tests") as lightkube:
        created = lightkube.create(kind(metadata=ObjectMeta(name="a"), spec={"color": "red"}))
        assert created.spec == {"color": "red", "size": 1}
        applied = lightkube.apply(kind(metadata=ObjectMeta(name="b"), spec={"size": 2}))
        assert [each.manager for each in applied.metadata.managedFields] == ["tests"]
        patched = lightkube.patch(kind, "a", {"spec": {"size": 7}}, patch_type=PatchType.MERGE)
        assert patched.metadata.generation == 2
        lightkube.patch(kind.Status, "a", {"status": {"phase": "Ready"}}, patch_type=PatchType.MERGE)
        listed = [each.to_dict() for each in lightkube.list(kind)]
        phases = {each["metadata"]["name"]: each.get("status") for each in listed}
        assert phases == {"a": {"phase": "Ready"}, "b": None}
        for type_, each in lightkube.watch(kind, resource_version="0"):
            assert (type_, each.metadata.name) == ("ADDED", "a")
            break
        lightkube.delete(kind, "a")
        assert [each.metadata.name for each in lightkube.list(kind)] == ["b"]


class WidgetWatch:
    """A client that watches the Widgets in v2 and records their events until it is stopped; it resumes after
    interruptions.
    """

    def __init__(self, api: client.ApiClient, group: str, namespace: str) -> None:
        self.seen: list[tuple[str, str, Any]] = []
        self.begun = 0
        self._custom, self._where = client.CustomObjectsApi(api), (group, "v2", namespace, "widgets")
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> WidgetWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._custom.patch_namespaced_custom_object(*self._where, "last", {"metadata": {"labels": {"end": "yes"}}})
        self._thread.join(DEADLINE)

    def _run(self) -> None:
        listed = self._custom.list_namespaced_custom_object(*self._where)
        version = listed["metadata"]["resourceVersion"]
        while ("MODIFIED", "last", 1) not in self.seen:
            self.begun += 1
            stream = Watch().stream(
                self._custom.list_namespaced_custom_object, *self._where, resource_version=version, timeout_seconds=20
            )
            for event in stream:
                obj = event["object"]
                version = obj["metadata"]["resourceVersion"]
                self.seen.append((event["type"], obj["metadata"]["name"], obj["spec"].get("width")))
                if obj["metadata"]["name"] == "last":
                    break


def test_a_watch_converts_to_another_version(
    server: Server, api: client.ApiClient, namespace: str, tmp_path: Path
) -> None:
    group, hook = f"{namespace}.example.com", Hook(tmp_path)
    versions = version("v1", "size"), version("v2", "width", storage=False)
    fields = definition(group, *versions, conversion=hook.conversion)
    custom, where = client.CustomObjectsApi(api), (group, "v1", namespace, "widgets")
    with hook.running(), defined(server, fields):
        custom.create_namespaced_custom_object(*where, widget(group, "last", size=1))
        with make.connected(server) as other, WidgetWatch(other, group, namespace) as watched:
            until(lambda: watched.begun)
            custom.create_namespaced_custom_object(*where, widget(group, size=2))
            until(lambda: ("ADDED", "a", 2) in watched.seen)
            custom.patch_namespaced_custom_object(*where, "a", {"spec": {"size": 3}})
            until(lambda: ("MODIFIED", "a", 3) in watched.seen)
            hook.broken = True
            begun = watched.begun
            custom.patch_namespaced_custom_object(*where, "a", {"spec": {"size": 4}})
            until(lambda: watched.begun > begun)  # an object that cannot be converted ends a watch
            hook.broken = False
            until(lambda: ("MODIFIED", "a", 4) in watched.seen)
            custom.delete_namespaced_custom_object(*where, "a")
            until(lambda: ("DELETED", "a", 4) in watched.seen)
        seen = [event for event in watched.seen if event[1] == "a"]
        assert seen == [("ADDED", "a", 2), ("MODIFIED", "a", 3), ("MODIFIED", "a", 4), ("DELETED", "a", 4)]
