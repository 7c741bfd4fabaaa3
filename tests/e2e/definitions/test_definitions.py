"""Tests of the life cycle of a CustomResourceDefinition, of watches of its objects, and of discovery."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.e2e.clients.client_go import JSON, ClientGo
from tests.e2e.definitions.crds import JSON_PATCH, Crd, served, version
from tests.e2e.kubectl import Kubectl
from tests.e2e.serving import DEADLINE, Server, until
from tests.e2e.widgets import DEFINITIONS

AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture
def crd(server: Server) -> Iterator[Crd]:
    with served(server) as crd:
        yield crd


class ObjectWatch:
    """The watch events of one custom object, up to its deletion."""

    def __init__(self, server: Server, path: str, name: str) -> None:
        self.told: list[tuple[str, str]] = []
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(server, path, name), daemon=True)
        self._thread.start()
        assert self._begun.wait(DEADLINE)

    def _run(self, server: Server, path: str, name: str) -> None:
        query = {"fieldSelector": f"metadata.name={name}", "timeoutSeconds": "600"}
        with ClientGo(server) as client, client.watch(path, query, JSON) as events:
            self._begun.set()
            for event in events:
                self.told.append((event["type"], event["object"]["metadata"]["name"]))
                if event["type"] == "DELETED":
                    return

    def ended(self) -> list[tuple[str, str]]:
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()
        return self.told


def test_objects_are_watched_by_name(server: Server, crd: Crd) -> None:
    a, b = (ObjectWatch(server, crd.objects(), name) for name in ("name1", "name2"))
    for name in ("name1", "name2"):
        made = server.create(crd.objects(), crd.object(name))
        assert made["metadata"]["uid"]
        assert (made["apiVersion"], made["kind"]) == (f"{crd.group}/v1", crd.kind)
    add = '[{"op": "add", "path": "/dummy", "value": "test"}]'
    for name in ("name1", "name2"):
        assert server.request("PATCH", f"{crd.objects()}/{name}", add, media_type=JSON_PATCH)[0] == 200
    for name in ("name1", "name2"):
        assert server.request("DELETE", f"{crd.objects()}/{name}")[0] == 200
    types = ("ADDED", "MODIFIED", "DELETED")
    assert a.ended() == [(each, "name1") for each in types]
    assert b.ended() == [(each, "name2") for each in types]


def test_a_definition_is_created_and_deleted(server: Server) -> None:
    with served(server) as crd:
        assert server.request("GET", crd.objects())[1]["items"] == []
    assert server.request("GET", crd.objects())[0] == 404


def test_definitions_are_listed_and_deleted_by_their_labels(server: Server, namespace: str) -> None:
    selector = f"{DEFINITIONS}?labelSelector=list-test%3D{namespace}"
    with ExitStack() as stack:
        other = stack.enter_context(served(server))
        made = [stack.enter_context(served(server, labels={"list-test": namespace})) for _ in range(10)]
        listed = {each["metadata"]["name"]: each["spec"] for each in server.request("GET", selector)[1]["items"]}
        assert listed == {each.name: server.request("GET", each.path)[1]["spec"] for each in made}
        assert server.request("DELETE", selector)[0] == 200
        until(lambda: server.request("GET", selector)[1]["items"] == [])
        assert server.request("GET", other.path)[0] == 200


def test_the_status_is_read_updated_and_patched(server: Server, crd: Crd) -> None:
    status = f"{crd.path}/status"
    read = server.request("GET", status)[1]
    assert read["spec"] == server.request("GET", crd.path)[1]["spec"]
    read["status"]["conditions"].append({"message": "updated", "lastTransitionTime": None, "status": "", "type": ""})
    code, updated = server.request("PUT", status, read)
    assert code == 200, updated
    assert "updated" in [each["message"] for each in updated["status"]["conditions"]]
    add = [{"op": "add", "path": "/status/conditions", "value": [{"message": "patched"}]}]
    code, patched = server.request("PATCH", status, add, media_type=JSON_PATCH)
    assert code == 200, patched
    assert [each["message"] for each in patched["status"]["conditions"]] == ["patched"]


def test_stored_and_written_objects_are_defaulted(server: Server) -> None:
    schema = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    }
    where = "/spec/versions/0/schema/openAPIV3Schema/properties"
    with served(server, version(schema=schema)) as crd:

        def read(name: str) -> Any:
            return server.request("GET", f"{crd.objects()}/{name}")[1]

        server.create(crd.objects(), crd.object("one"))
        add_a = [{"op": "add", "path": f"{where}/a/default", "value": "A"}]
        assert server.request("PATCH", crd.path, add_a, media_type=JSON_PATCH)[0] == 200
        until(lambda: "a" in read("one"))
        assert read("one")["a"] == "A"
        assert server.create(crd.objects(), crd.object("two"))["a"] == "A"
        change = [
            {"op": "remove", "path": f"{where}/a/default"},
            {"op": "add", "path": f"{where}/b/default", "value": "B"},
        ]
        assert server.request("PATCH", crd.path, change, media_type=JSON_PATCH)[0] == 200
        until(lambda: "b" in read("one"))
        assert ("a" in read("one"), read("one")["b"]) == (False, "B")  # a was never stored
        assert (read("two")["a"], read("two")["b"]) == ("A", "B")


def test_definitions_are_in_the_discovery_documents(server: Server) -> None:
    groups = {each["name"]: each for each in server.request("GET", "/apis")[1]["groups"]}
    group = server.request("GET", "/apis/apiextensions.k8s.io")[1]
    for each in (groups["apiextensions.k8s.io"], group):
        assert {"groupVersion": "apiextensions.k8s.io/v1", "version": "v1"} in each["versions"]
    assert group["name"] == "apiextensions.k8s.io"
    resources = server.request("GET", "/apis/apiextensions.k8s.io/v1")[1]
    assert resources["groupVersion"] == "apiextensions.k8s.io/v1"
    assert "customresourcedefinitions" in [each["name"] for each in resources["resources"]]


def test_custom_kinds_are_in_aggregated_discovery(server: Server, crd: Crd) -> None:
    code, answer = server.request("GET", "/apis", accept=AGGREGATED)
    assert (code, answer["kind"]) == (200, "APIGroupDiscoveryList")
    (group,) = [each for each in answer["items"] if each["metadata"]["name"] == crd.group]
    assert [(each["version"], each["freshness"]) for each in group["versions"]] == [("v1", "Current")]
    (resource,) = group["versions"][0]["resources"]
    assert (resource["resource"], resource["scope"]) == (crd.plural, "Cluster")
    assert resource["responseKind"] == {"group": crd.group, "version": "v1", "kind": crd.kind}


def test_a_client_that_uses_aggregated_discovery_finds_custom_kinds(anywhere: Kubectl, crd: Crd) -> None:
    """The client is kubectl, which does not need the discovery documents of single groups and versions."""
    anywhere.since(27)
    done = anywhere.run(f"api-resources --cached=false --api-group={crd.group} -v=6")
    assert done.out.split()[-4:] == [crd.plural, f"{crd.group}/v1", "false", crd.kind]
    asked = [line.partition("https://")[2] for line in done.err.splitlines() if "GET https://" in line]
    assert json.dumps(asked).count("/apis") == 1
