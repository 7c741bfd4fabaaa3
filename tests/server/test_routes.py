"""Tests of the URL space: which resources paths lead to, and which paths are unknown."""

from __future__ import annotations

import pytest

from ctrlmgr.server.routes import ResourcePath, locate


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", ResourcePath("", "v1", "pods")),
        ("/api/v1/pods/", ResourcePath("", "v1", "pods")),
        ("/apis/apps/v1/deployments", ResourcePath("apps", "v1", "deployments")),
        ("/api/v1/nodes/n", ResourcePath("", "v1", "nodes", name="n")),
        ("/api/v1/namespaces", ResourcePath("", "v1", "namespaces")),
        ("/api/v1/namespaces/x", ResourcePath("", "v1", "namespaces", "x", "x")),
        ("/api/v1/namespaces/x/status", ResourcePath("", "v1", "namespaces", "x", "x", "status")),
        ("/api/v1/namespaces/x/finalize", ResourcePath("", "v1", "namespaces", "x", "x", "finalize")),
        ("/api/v1/namespaces/x/pods", ResourcePath("", "v1", "pods", "x")),
        ("/api/v1/namespaces/status/pods/p", ResourcePath("", "v1", "pods", "status", "p")),
        ("/api/v1/namespaces/x/pods/p/log", ResourcePath("", "v1", "pods", "x", "p", "log")),
        ("/api/v1/namespaces/x/pods/p/proxy/a/b", ResourcePath("", "v1", "pods", "x", "p", "proxy", "a/b")),
        ("/api/v1/watch/pods", ResourcePath("", "v1", "pods", prefix="watch")),
        ("/api/v1/watch/namespaces/x/pods/p", ResourcePath("", "v1", "pods", "x", "p", prefix="watch")),
        ("/api/v1/watch/namespaces/x/status", ResourcePath("", "v1", "namespaces", "x", "x", "status", prefix="watch")),
        ("/apis/g/v1/watch/things/a/b", ResourcePath("g", "v1", "things", "", "a", "b", prefix="watch")),
        ("/api/v1/proxy/nodes/x", ResourcePath("", "v1", "nodes", "", "x", prefix="proxy")),
        ("/api/v1/proxy/nodes/x/logs/a", ResourcePath("", "v1", "nodes", "", "x", "", "a", prefix="proxy")),
        ("/api/v1/proxy/namespaces/x/pods/p/a", ResourcePath("", "v1", "pods", "x", "p", prefix="proxy")),
        ("/apis/rbac/v1/clusterroles/system%3Anode", ResourcePath("rbac", "v1", "clusterroles", name="system:node")),
    ],
)
def test_a_path_is_parsed_into_its_resource(path: str, expected: ResourcePath) -> None:
    assert locate(path.encode()).resource == expected


@pytest.mark.parametrize(
    "path", ["/", "/version", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/watch/pods"]
)
def test_other_paths_have_no_resource(path: str) -> None:
    location = locate(path.encode())
    assert location.resource is None
    assert location.parts is not None
    assert not location.problem


@pytest.mark.parametrize("path", ["/api/v1/watch", "/api/v1/proxy/", "/apis/apps/v1/watch"])
def test_a_prefix_alone_has_no_resource(path: str) -> None:
    location = locate(path.encode())
    assert (location.resource, location.problem) == (None, "unable to determine kind and namespace from url")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/../pods",
        "/api/v1/namespaces/./pods",
        "/api/v1/namespaces/%2e%2e/pods",
        "/api/v1/namespaces/a%2fb",
        "/api/v1/namespaces/a%2Fb",
        "/api/v1/namespaces/a%00",
        "/api/v1/namespaces/a%252fb",
        "/api/v1/namespaces/a%5cb",
        "/api/v1/namespaces/a\\b",
        "/api/v1//pods",
        "//api/v1/pods",
        "/api/v1/pods//",
    ],
)
def test_ambiguous_paths_are_refused(path: str) -> None:
    location = locate(path.encode())
    assert (location.parts, location.resource) == (None, None)


@pytest.mark.parametrize(
    ("path", "is_api"), [("/api/v1//x", True), ("/apis//x", True), ("/apix/..", False), ("//api/v1/pods", False)]
)
def test_only_unknown_paths_of_the_api_return_a_status(path: str, is_api: bool) -> None:
    assert locate(path.encode()).is_api is is_api
