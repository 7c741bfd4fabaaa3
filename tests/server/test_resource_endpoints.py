"""Tests of the paths and methods that the server serves, and of the attributes of requests."""

from __future__ import annotations

import pytest

from ctrlmgr.authorization.attributes import Attributes, Requirement
from ctrlmgr.errors import MethodNotAllowed
from ctrlmgr.server.resource_endpoints import Place, Places
from tests.engine.stage import builtin_kinds

PLACES = Places(builtin_kinds())
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND")


def find(path: str) -> Place:
    return PLACES.find(path.encode())


def served(path: str) -> dict[str, str]:
    endpoint = find(path).endpoint
    assert endpoint is not None
    verbs = {}
    for method in METHODS:
        try:
            verbs[method] = endpoint.verb(method)
        except MethodNotAllowed:
            continue
    return verbs


READ = {"GET": "get"}
WRITE = {"PUT": "update", "PATCH": "patch"}


@pytest.mark.parametrize(
    ("path", "verbs"),
    [
        ("/api/v1/namespaces/n/pods", {"GET": "list", "POST": "create", "DELETE": "deletecollection"}),
        ("/api/v1/pods", {"GET": "list"}),
        ("/api/v1/namespaces", {"GET": "list", "POST": "create"}),
        ("/api/v1/namespaces/n/pods/p", {**READ, **WRITE, "DELETE": "delete"}),
        ("/api/v1/namespaces/n", {**READ, **WRITE, "DELETE": "delete"}),
        ("/api/v1/namespaces/n/status", {**READ, **WRITE}),
        ("/api/v1/namespaces/n/finalize", {"PUT": "update"}),
        ("/api/v1/namespaces/n/pods/p/binding", {"POST": "create"}),
        (
            "/api/v1/namespaces/n/services/s/proxy/a/b",
            {**READ, "HEAD": "get", **WRITE, "POST": "create", "DELETE": "delete", "OPTIONS": "get"},
        ),
        ("/api/v1/watch/pods", {"GET": "watch"}),
        ("/api/v1/watch/namespaces/n/pods/p", {"GET": "watch"}),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"POST": "create"}),
        ("/apis/apps/v1/namespaces/n/deployments/d/scale", {**READ, **WRITE}),
    ],
)
def test_the_methods_of_a_path(path: str, verbs: dict[str, str]) -> None:
    assert served(path) == verbs


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nopes",
        "/api/v1/pods/p",
        "/api/v2/pods",
        "/apis/apps/v9/deployments",
        "/api/v1/namespaces/n/nodes",
        "/api/v1/namespaces/n/nodes/n",
        "/api/v1/namespaces/n/namespaces/m",
        "/api/v1/namespaces/n/pods/p/nope",
        "/api/v1/namespaces/n/pods/p/status/more",
        "/api/v1/watch/namespaces/n/pods/p/status",
        "/api/v1/watch/bindings",
        "/api/v1/proxy/nodes/x",
        "/api/v1/proxy/namespaces/n/pods/p",
    ],
)
def test_unknown_paths_have_no_endpoint(path: str) -> None:
    assert find(path).endpoint is None


def test_an_endpoint_is_cached() -> None:
    assert find("/api/v1/namespaces/n/pods/p") is find("/api/v1/namespaces/n/pods/p")


def test_paths_of_one_form_share_their_endpoint() -> None:
    assert find("/api/v1/namespaces/n/pods/p").endpoint is find("/api/v1/namespaces/m/pods/q").endpoint


@pytest.mark.parametrize(
    ("method", "path", "query", "verb"),
    [
        ("GET", "/api/v1/namespaces/n/pods", {}, "list"),
        ("GET", "/api/v1/namespaces/n/pods", {"watch": ["1"]}, "watch"),
        ("GET", "/api/v1/namespaces/n/pods", {"watch": [""]}, "watch"),
        ("GET", "/api/v1/namespaces/n/pods", {"watch": ["false"]}, "list"),
        ("GET", "/api/v1/namespaces/n/pods/p", {"watch": ["1"]}, "get"),
        ("HEAD", "/api/v1/namespaces/n/pods/p", {}, "get"),
        ("GET", "/api/v1/watch/pods", {}, "watch"),
        ("DELETE", "/api/v1/watch/pods", {}, "watch"),
        ("GET", "/api/v1/proxy/nodes/x", {}, "proxy"),
        ("POST", "/api/v1/proxy/nodes/x/logs", {}, "proxy"),
        ("POST", "/api/v1/namespaces/n/pods", {}, "create"),
        ("PUT", "/api/v1/namespaces/n/pods/p", {}, "update"),
        ("PATCH", "/api/v1/namespaces/n/pods/p", {}, "patch"),
        ("DELETE", "/api/v1/namespaces/n/pods/p", {}, "delete"),
        ("DELETE", "/api/v1/namespaces/n/pods", {}, "deletecollection"),
        ("PROPFIND", "/api/v1/namespaces/n/pods", {}, ""),
        ("GET", "/healthz", {}, "get"),
    ],
)
def test_a_request_has_a_verb(method: str, path: str, query: dict[str, list[str]], verb: str) -> None:
    assert find(path).attributes(method, query).verb == verb


ON_A = Requirement("metadata.name", "In", ("a",))
OF_WEB = Requirement("app", "In", ("web",))
BAD = "!!"


@pytest.mark.parametrize(
    ("method", "query", "name", "fields", "labels"),
    [
        ("GET", {"fieldSelector": ["metadata.name=a"]}, "a", (ON_A,), ()),
        ("GET", {"fieldSelector": ["metadata.name=a"], "watch": ["1"]}, "a", (ON_A,), ()),
        ("DELETE", {"fieldSelector": ["metadata.name=a"]}, "", (ON_A,), ()),
        ("GET", {"fieldSelector": ["metadata.name=a"], "labelSelector": ["app=web"]}, "a", (ON_A,), (OF_WEB,)),
        ("GET", {"fieldSelector": ["metadata.name=a"], "labelSelector": [BAD]}, "", (ON_A,), ()),
        ("GET", {"fieldSelector": [BAD], "labelSelector": ["app=web"]}, "", (), (OF_WEB,)),
        ("GET", {"fieldSelector": ["metadata.name=a"], "limit": ["x"]}, "", (ON_A,), ()),
        ("GET", {"fieldSelector": ["metadata.name=a"], "timeoutSeconds": ["x"]}, "", (ON_A,), ()),
    ],
)
def test_a_query_selects_objects(
    method: str,
    query: dict[str, list[str]],
    name: str,
    fields: tuple[Requirement, ...],
    labels: tuple[Requirement, ...],
) -> None:
    found = find("/api/v1/namespaces/n/pods").attributes(method, query)
    assert (found.name, found.fields, found.labels) == (name, fields, labels)


@pytest.mark.parametrize("path", ["/api/v1/watch/namespaces/n/pods", "/api/v1/namespaces/n/pods/p"])
def test_selectors_are_ignored_by_verbs_without_selection(path: str) -> None:
    found = find(path).attributes("GET", {"fieldSelector": ["metadata.name=a"], "labelSelector": ["app=web"]})
    assert (found.fields, found.labels) == ((), ())


def test_a_watch_and_a_list_of_one_path_are_distinguished_in_any_order() -> None:
    place = find("/api/v1/namespaces/told/pods")
    verbs = [place.attributes("GET", query).verb for query in ({}, {"watch": ["1"]}, {}, {"watch": ["0"]})]
    assert verbs == ["list", "watch", "list", "list"]


def test_attributes_contain_all_parts_of_a_path() -> None:
    path = "/apis/apps/v1/namespaces/n/deployments/d/scale"
    assert find(path).attributes("GET", {}) == Attributes("get", path, "apps", "v1", "deployments", "scale", "n", "d")


def test_deprecated_versions_have_a_warning() -> None:
    endpoint = find("/api/v1/namespaces/n/endpoints").endpoint
    assert endpoint is not None
    text = b'299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    assert list(endpoint.headers) == [(b"warning", text)]


def test_invented_subresources_and_methods_are_not_cached() -> None:
    places = Places(builtin_kinds())
    place = places.find(b"/api/v1/namespaces/n/pods/p")
    for number in range(100):
        places.find(b"/api/v1/namespaces/n/pods/p/made-up-%d" % number)
        place.attributes(f"METHOD{number}", {})
    assert (len(places._endpoints), len(place._attributes)) == (1, 0)
