"""Compares discovery documents with recorded responses of Kubernetes 1.36.2."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.kind import GroupVersionKind, Kind, Subresource
from ctrlmgr.engine.kind_registry import Group, Kinds
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.schema import published_schema
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.server.describe.discovery_documents import Discovery

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2_BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
ADDRESS = "10.0.0.21:16443"

PLAIN = [path for path in published_schema.discovery() if path.startswith("/api")]


@pytest.fixture(scope="module")
def discovery() -> Discovery:
    return Discovery(builtin_kinds(), ADDRESS)


def answer(discovery: Discovery, path: str, accept: str = "application/json") -> Any:
    document = discovery.answer(path, accept)
    assert document is not None
    return json.loads(document.body)


@pytest.mark.parametrize("path", PLAIN)
def test_every_document_equals_kubernetes(discovery: Discovery, path: str) -> None:
    assert answer(discovery, path) == published_schema.discovery()[path]


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_the_aggregated_document_equals_kubernetes(discovery: Discovery, path: str) -> None:
    whole = answer(discovery, path, V2)
    for group in whole["items"]:
        for version in group["versions"]:
            name = group["metadata"].get("name", "")
            place = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
            listed = {each["name"] for each in published_schema.discovery()[place]["resources"]}
            assert {each["resource"] for each in version["resources"]} == {each for each in listed if "/" not in each}
    assert whole["items"]
    assert answer(discovery, path, V2_BETA1) == {**whole, "apiVersion": "apidiscovery.k8s.io/v2beta1"}


def test_fields_have_the_order_of_go(discovery: Discovery) -> None:
    document = discovery.answer("/apis/apps/v1", "")
    assert document is not None
    assert document.body.startswith(
        b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":['
        b'{"name":"controllerrevisions","singularName":"controllerrevision","namespaced":true,"kind":"ControllerRevision",'
        b'"verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"storageVersionHash":'
    )


def test_a_single_group_is_described(discovery: Discovery) -> None:
    assert answer(discovery, "/apis/autoscaling") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "autoscaling",
        "versions": [
            {"groupVersion": "autoscaling/v2", "version": "v2"},
            {"groupVersion": "autoscaling/v1", "version": "v1"},
        ],
        "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
    }


@pytest.mark.parametrize("path", ["/api/", "/apis/", "/api/v1/", "/apis/apps/", "/apis/apps/v1/"])
def test_a_trailing_slash_changes_nothing(discovery: Discovery, path: str) -> None:
    assert discovery.answer(path, "") == discovery.answer(path.rstrip("/"), "")


@pytest.mark.parametrize(
    "path",
    ["/", "/version", "/api/v2", "/apis/v1", "/apis//v1", "/apis/nope.k8s.io", "/apis/apps/v2", "/apis/apps/v1/pods"],
)
def test_an_unknown_path_has_no_document(discovery: Discovery, path: str) -> None:
    assert discovery.answer(path, "") is None


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("", "application/json", id="nothing asked for"),
        pytest.param("*/*", "application/json", id="anything"),
        pytest.param(f"{V2},{V2_BETA1},application/json", V2, id="kubectl"),
        pytest.param(f"{V2_BETA1},application/json", V2_BETA1, id="kubectl 1.27"),
        pytest.param(f"application/json,{V2}", "application/json", id="plain first"),
        pytest.param(f"application/json;q=0.1,{V2}", V2, id="by quality"),
        pytest.param(V2.replace("v=v2", "v=v3") + ",application/json", "application/json", id="an unknown version"),
        pytest.param(f"{V2};profile=nopeer", V2, id="a parameter that is not known"),
        pytest.param(
            "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", V2, id="parameters in another order"
        ),
        pytest.param(
            V2.replace("/json", "/vnd.kubernetes.protobuf") + f",{V2}", V2, id="protobuf if possible, which it is not"
        ),
    ],
)
def test_the_format_is_negotiated(discovery: Discovery, accept: str, content_type: str) -> None:
    document = discovery.answer("/apis", accept)
    assert document is not None
    assert document.content_type == content_type


def test_only_both_roots_have_the_aggregated_format(discovery: Discovery) -> None:
    assert answer(discovery, "/api/v1", V2)["kind"] == "APIResourceList"


def test_etags_distinguish_the_formats(discovery: Discovery) -> None:
    tags = {document.etag for accept in ("", V2, V2_BETA1) if (document := discovery.answer("/apis", accept))}
    assert len(tags) == 3


def test_an_added_kind_is_listed() -> None:
    kinds = Kinds(Definitions.builtin(), groups=(Group("example.com", ("v1",)),))
    gvk = GroupVersionKind("example.com", "v1", "Widget")
    scale = Subresource("scale", GroupVersionKind("autoscaling", "v1", "Scale"), frozenset({"get", "update"}))
    kinds.add(
        Kind(
            resource=Resource("example.com", "widgets"),
            gvk=gvk,
            singular="widget",
            namespaced=True,
            verbs=frozenset({"get", "create"}),
            definition="io.k8s.api.core.v1.ConfigMap",
            definitions=kinds.definitions,
            strategy=Strategy(),
            storage=Resource("example.com", "widgets"),
            short_names=("wd",),
            subresources={"scale": scale},
        )
    )
    discovery = Discovery(kinds)
    [widgets, widgets_scale] = answer(discovery, "/apis/example.com/v1")["resources"]
    assert (widgets["name"], widgets["shortNames"]) == ("widgets", ["wd"])
    assert (widgets_scale["name"], widgets_scale["group"], widgets_scale["version"]) == (
        "widgets/scale",
        "autoscaling",
        "v1",
    )
    [group] = answer(discovery, "/apis", V2)["items"]
    [resource] = group["versions"][0]["resources"]
    kind = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert resource["subresources"] == [{"subresource": "scale", "responseKind": kind, "verbs": ["get", "update"]}]
    assert answer(discovery, "/api")["versions"] == []
