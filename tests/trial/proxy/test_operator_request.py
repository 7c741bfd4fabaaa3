"""Requests of operators are read from their methods and paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.trial.proxy.operator_request import Call, Request, read_request, refusal


def request(method: str, target: str, fields: Any = None) -> Request:
    return read_request(method, target, {}, b"" if fields is None else json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("method", "target", "right"),
    [
        ("GET", "/api/v1/namespaces/shop/pods/web-0", "get pods"),
        ("GET", "/api/v1/pods?watch=1", "watch pods"),
        ("GET", "/api/v1/pods?watch=false", "list pods"),
        ("POST", "/apis/apps/v1/namespaces/shop/deployments", "create deployments.apps"),
        ("PUT", "/apis/example.com/v1/namespaces/shop/widgets/a/status", "update widgets.example.com/status"),
        ("PATCH", "/api/v1/namespaces/shop", "patch namespaces"),
        ("PUT", "/api/v1/namespaces/shop/finalize", "update namespaces/finalize"),
        ("DELETE", "/api/v1/nodes/node-1", "delete nodes"),
        ("DELETE", "/api/v1/namespaces/shop/pods", "deletecollection pods"),
    ],
)
def test_the_right_of_a_request_is_known(method: str, target: str, right: str) -> None:
    assert request(method, target).right == right


@pytest.mark.parametrize("target", ["/", "/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v3", "/version"])
def test_discovery_concerns_no_resource(target: str) -> None:
    found = request("GET", target)
    assert found.resource is None
    assert not found.is_tracked_write


@pytest.mark.parametrize(
    ("found", "call"),
    [
        (request("PUT", "/api/v1/namespaces/shop/configmaps/web", {}), "update configmaps shop/web"),
        (request("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}}), "create namespaces shop"),
        (
            request("POST", "/api/v1/namespaces/shop/secrets", {"metadata": {"generateName": "web-"}}),
            "create secrets shop/web-*",
        ),
        (request("DELETE", "/apis/apps/v1/namespaces/shop/deployments/web"), "delete deployments.apps shop/web"),
    ],
)
def test_writes_have_names_that_plans_can_contain(found: Request, call: str) -> None:
    assert found.is_tracked_write
    assert str(found.call) == call
    assert Call.parse(call) == found.call


@pytest.mark.parametrize("text", ["get pods shop/web", "create", "create ", "create pods a b"])
def test_other_texts_name_no_write(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Call.parse(text)


@pytest.mark.parametrize(
    "found",
    [
        request("GET", "/api/v1/pods"),
        request("PUT", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/operator", {}),
        request("POST", "/api/v1/namespaces/shop/events", {}),
        request("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", {}),
        request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {}),
        request("POST", "/api/v1/namespaces/shop/pods?dryRun=All", {}),
    ],
)
def test_requests_without_lasting_effect_are_no_tracked_writes(found: Request) -> None:
    assert not found.is_tracked_write


@pytest.mark.parametrize(
    ("fields", "is_conditional"),
    [({"metadata": {"resourceVersion": "7"}}, True), ({"metadata": {}}, False), ([], False), (None, False)],
)
def test_a_write_is_conditional_if_it_names_a_revision(fields: Any, is_conditional: bool) -> None:
    assert request("PUT", "/api/v1/namespaces/shop/configmaps/web", fields).is_conditional == is_conditional


def test_the_resource_of_a_namespaced_path_is_known() -> None:
    found = request("PUT", "/apis/example.com/v1/namespaces/shop/widgets/a/status?fieldManager=x", {})
    assert found.resource == Resource("example.com", "widgets")
    assert (found.namespace, found.name, found.subresource) == ("shop", "a", "status")
    assert found.path == "/apis/example.com/v1/namespaces/shop/widgets/a/status"


def test_a_refusal_is_a_status_object() -> None:
    answer = refusal(429, "TooManyRequests", "too many", Retry_After="1")
    assert answer.headers["Retry-After"] == "1"
    status = json.loads(answer.body)
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 429, "TooManyRequests")
