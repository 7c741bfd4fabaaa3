"""Tests of the API over HTTP: verbs, representations, and refusals."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import yaml

from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, Verdict
from ctrlmgr.engine.admission_attributes import Attributes as Attributed
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import Unauthorized
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts
from tests.server.site import CONFIG_MAPS, Site, make, running

MERGE = {"Content-Type": "application/merge-patch+json"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running() as site:
        yield site


@pytest.fixture
def name(site: Site, request: pytest.FixtureRequest) -> str:
    """Return a ConfigMap that only this test uses."""
    name = str(request.node.name).replace("_", "-")
    site.create(name, k="v")
    return name


def test_a_created_object_can_be_read(site: Site, name: str) -> None:
    answer = site.ask(f"{CONFIG_MAPS}/{name}")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-cache, private"
    assert answer.body.startswith('{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"')
    assert answer.body.endswith("}\n")
    assert answer.json["data"] == {"k": "v"}


def test_items_of_a_list_have_no_kind(site: Site, name: str) -> None:
    listed = site.ask(f"{CONFIG_MAPS}?fieldSelector=metadata.name%3D{name}").json
    assert listed["kind"] == "ConfigMapList"
    assert [sorted(item) for item in listed["items"]] == [["data", "metadata"]]
    everywhere = site.ask("/api/v1/configmaps").json
    assert name in [item["metadata"]["name"] for item in everywhere["items"]]


def test_an_empty_list_has_an_empty_array(site: Site) -> None:
    assert '"items":[]}' in site.ask("/api/v1/namespaces/default/secrets").body


def test_pages_have_continue_tokens(site: Site, name: str) -> None:
    site.create(f"{name}-2")
    first = site.ask(f"{CONFIG_MAPS}?limit=1").json
    assert len(first["items"]) == 1
    second = site.ask(f"{CONFIG_MAPS}?limit=1&continue={first['metadata']['continue']}").json
    assert second["items"][0]["metadata"]["name"] > first["items"][0]["metadata"]["name"]


def test_an_object_is_updated_and_patched(site: Site, name: str) -> None:
    obj = site.ask(f"{CONFIG_MAPS}/{name}").json
    updated = site.ask(f"{CONFIG_MAPS}/{name}", "PUT", {**obj, "data": {"k": "w"}})
    assert (updated.status, updated.json["data"]) == (200, {"k": "w"})
    assert site.ask(f"{CONFIG_MAPS}/{name}", "PUT", obj).status == 409
    assert site.change(name, x="y")["data"] == {"k": "w", "x": "y"}


def test_the_author_is_the_user_and_the_user_agent(site: Site, name: str) -> None:
    site.ask(f"{CONFIG_MAPS}/{name}", "PATCH", {"data": {"a": "b"}}, {**MERGE, "User-Agent": "tester/1.0"})
    event = site.log.events_after(site.log.head().revision - 1)[-1]
    assert (event.actor, event.user_agent) == ("admin", "tester/1.0")


def test_a_deletion_returns_a_status(site: Site, name: str) -> None:
    answer = site.ask(f"{CONFIG_MAPS}/{name}", "DELETE")
    assert (answer.status, answer.json["status"], answer.json["details"]["name"]) == (200, "Success", name)
    gone = site.ask(f"{CONFIG_MAPS}/{name}")
    assert gone.json["message"] == f'configmaps "{name}" not found'


def test_options_of_a_deletion_are_in_its_body(site: Site, name: str) -> None:
    answer = site.ask(f"{CONFIG_MAPS}/{name}", "DELETE", {"preconditions": {"uid": "another"}})
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")


def test_a_collection_is_deleted_and_listed(site: Site, name: str) -> None:
    path = f"{CONFIG_MAPS}?fieldSelector=metadata.name%3D{name}"
    assert [item["metadata"]["name"] for item in site.ask(path, "DELETE").json["items"]] == [name]
    assert site.ask(path).json["items"] == []


def test_bodies_and_responses_can_be_yaml(site: Site) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: in-yaml\ndata: {a: b}\n"
    answer = site.ask(CONFIG_MAPS, "POST", body, {"Content-Type": "application/yaml", "Accept": "application/yaml"})
    assert (answer.status, answer.headers["content-type"]) == (201, "application/yaml")
    assert yaml.safe_load(answer.body)["data"] == {"a": "b"}


def test_a_body_without_a_type_is_json(site: Site) -> None:
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=10)
    connection.putrequest("POST", CONFIG_MAPS)
    body = b'{"metadata":{"name":"untyped"}}'
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    assert connection.getresponse().status == 201
    connection.close()


def test_browsers_get_indented_responses(site: Site, name: str) -> None:
    path = f"{CONFIG_MAPS}/{name}"
    assert site.ask(path, headers={"User-Agent": "curl/8.0"}).body.startswith('{\n  "kind": "ConfigMap",\n')
    assert site.ask(path).body.startswith('{"kind":"ConfigMap",')


def test_a_table_is_returned(site: Site, name: str) -> None:
    table = site.ask(f"{CONFIG_MAPS}/{name}", headers=TABLE).json
    assert table["kind"] == "Table"
    assert [row["cells"][:2] for row in table["rows"]] == [[name, 1]]


def test_metadata_is_returned_alone(site: Site, name: str) -> None:
    accept = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    assert site.ask(f"{CONFIG_MAPS}/{name}", headers=accept).json.keys() == {"kind", "apiVersion", "metadata"}


def test_warnings_are_headers(site: Site) -> None:
    body = {"metadata": {"name": "odd"}, "spec": {"no": "such"}}
    answer = site.ask(CONFIG_MAPS, "POST", body)
    assert (answer.status, answer.headers["warning"]) == (201, '299 - "unknown field \\"spec\\""')


def status(code: int, reason: str, message: str, details: str = ',"details":{}') -> str:
    start = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":'
    return f'{start}{json.dumps(message)},"reason":"{reason}"{details},"code":{code}}}\n'


NOT_ALLOWED = status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
UNKNOWN = status(404, "NotFound", "the server could not find the requested resource")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v2", UNKNOWN),
        ("GET", "/api/v1/nopes", UNKNOWN),
        ("GET", "/api/v1/configmaps/x", UNKNOWN),
        ("GET", "/apis/apps/v9/deployments", UNKNOWN),
        ("GET", "/api/v1/namespaces/../configmaps", UNKNOWN),
        ("GET", "/apis/nope.k8s.io/v1", "404 page not found\n"),
        ("GET", "/apis/nope.k8s.io/v1/nopes", "404 page not found\n"),
        ("GET", "/nope", "404 page not found\n"),
        ("GET", "/nope/..", "404 page not found\n"),
        ("POST", "/api/v1/configmaps", NOT_ALLOWED),
        ("PUT", CONFIG_MAPS, NOT_ALLOWED),
        ("POST", f"{CONFIG_MAPS}/x", NOT_ALLOWED),
        ("OPTIONS", f"{CONFIG_MAPS}/x", NOT_ALLOWED),
        ("HEAD", f"{CONFIG_MAPS}/x", ""),
        ("POST", "/version", NOT_ALLOWED),
        ("POST", "/api", NOT_ALLOWED),
    ],
)
def test_missing_objects_and_unsupported_methods_are_refused(site: Site, method: str, path: str, body: str) -> None:
    answer = site.ask(path, method)
    assert answer.status == (404 if "404" in body else 405)
    assert answer.body == body
    assert "allow" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "code", "message"),
    [
        (
            {"Content-Type": "text/plain"},
            415,
            "the body of the request was in an unknown format - accepted media types",
        ),
        ({"Content-Encoding": "gzip"}, 415, "the body of the request must not be encoded"),
        ({"Accept": "text/html"}, 406, "406: Not Acceptable"),
    ],
)
def test_undecodable_and_unsupported_types_are_refused(
    site: Site, headers: dict[str, str], code: int, message: str
) -> None:
    answer = site.ask(CONFIG_MAPS, "POST", b"x", headers)
    assert (answer.status, answer.json["code"]) == (code, code)
    assert answer.json["message"].startswith(message)


def test_an_unsupported_patch_type_is_refused(site: Site, name: str) -> None:
    answer = site.ask(
        f"{CONFIG_MAPS}/{name}", "PATCH", b"{}", {"Content-Type": "application/json", "Accept": "text/html"}
    )
    assert answer.body == status(415, "UnsupportedMediaType", "415: Unsupported Media Type")


def test_a_too_large_body_is_refused(site: Site) -> None:
    answer = site.ask(CONFIG_MAPS, "POST", b"x" * (3 * 1024 * 1024 + 1))
    message = "Request entity is too large: limit is 3145728"
    assert answer.body == status(413, "RequestEntityTooLarge", message, details="")


def test_errors_are_yaml_on_request(site: Site) -> None:
    answer = site.ask("/api/v1/nopes", headers={"Accept": "application/yaml"})
    assert (answer.headers["content-type"], yaml.safe_load(answer.body)["code"]) == ("application/yaml", 404)


def test_a_future_revision_gets_retry_after(site: Site) -> None:
    # The log does not reach the revision, so the engine waits for three seconds.
    answer = site.ask(f"{CONFIG_MAPS}?resourceVersion=999999999")
    assert (answer.status, answer.headers["retry-after"]) == (504, "1")
    assert answer.json["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


def test_a_long_list_is_complete_with_and_without_compression(site: Site) -> None:
    for number in range(30):
        site.create(f"long-{number}", text="x" * 10_000)
    path = f"{CONFIG_MAPS}?labelSelector=!none"
    plain = site.ask(path)
    assert len([item for item in plain.json["items"] if item["metadata"]["name"].startswith("long-")]) == 30
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=10)
    connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
    packed = connection.getresponse()
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "accept-encoding")
    assert gzip.decompress(packed.read()).decode() == plain.body
    connection.close()
    assert yaml.safe_load(site.ask(path, headers={"Accept": "application/yaml"}).body) == plain.json
    assert site.ask(path, headers={"User-Agent": "curl"}).body.startswith('{\n  "kind": "ConfigMapList",\n')
    assert len(site.ask(path, headers=TABLE).json["rows"]) == len(plain.json["items"])


def test_a_short_list_is_not_compressed(site: Site) -> None:
    answer = site.ask("/api/v1/namespaces", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in answer.headers


def test_reviews_are_answered(site: Site) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    spec = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    answer = site.ask(path, "POST", {"spec": spec})
    assert (answer.status, answer.json["status"]) == (201, {"allowed": True})
    assert answer.json["kind"] == "SelfSubjectAccessReview"
    assert site.ask(path, "POST", {"spec": {}}).status == 422
    assert site.ask(path).status == 405


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("services/web/proxy", 404, 'services "web" not found'),
        ("services/https:web:80/proxy/a/b", 404, 'services "web" not found'),
        ("services/https:web:443/proxy/a/b", 503, 'no service port 443 found for service "web"'),
        ("services/ftp:web:80/proxy", 400, 'invalid service request "ftp:web:80"'),
        ("services/web/proxy?dryRun=All", 400, "dryRun is not supported"),
        ("services/told/proxy", 503, 'no endpoints available for service "told"'),
        ("services/other/proxy", 404, 'services "other" not found'),
        ("pods/unplaced/proxy", 400, "address not allowed"),
        ("pods/unplaced/exec?command=ls", 400, "pod unplaced does not have a host assigned"),
        ("pods/placed/log", 503, 'no kubelet answers for node "node-a"'),
        ("pods/lost/log", 404, 'pods "node-b" not found'),
    ],
)
def test_pods_without_a_node_cannot_be_connected(site: Site, path: str, code: int, message: str) -> None:
    base = "/api/v1/namespaces/default"
    containers = [{"name": "c", "image": "i"}]
    for name in ("web", "told"):
        site.ask(f"{base}/services", "POST", {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})
    site.ask(f"{base}/endpoints", "POST", {"metadata": {"name": "told"}})
    site.ask(f"{base}/pods", "POST", {"metadata": {"name": "unplaced"}, "spec": {"containers": containers}})
    site.ask("/api/v1/nodes", "POST", {"metadata": {"name": "node-a"}})
    for name, node in ("placed", "node-a"), ("lost", "node-b"):
        spec = {"containers": containers, "nodeName": node}
        site.ask(f"{base}/pods", "POST", {"metadata": {"name": name}, "spec": spec})
    answer = site.ask(f"{base}/{path}")
    assert (answer.status, answer.json["message"]) == (code, message)


def test_a_pod_without_a_node_has_no_log(site: Site) -> None:
    path = "/api/v1/namespaces/default/pods"
    site.ask(path, "POST", {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    answer = site.ask(f"{path}/a/log")
    assert answer.status == 204


class NoConnections:
    """An admission chain that refuses connections to pods."""

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return operation is Verb.CONNECT

    def admit(self, attributes: Attributed) -> Operation[None]:
        yield from ()
        raise attributes.forbidden("nothing is connected to")


def test_a_log_is_read_by_get_only() -> None:
    made = make()
    path = "/api/v1/namespaces/default/pods"
    with running(made) as site:
        site.ask(path, "POST", {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        made.backend.engine.admission = cast("Any", NoConnections())
        assert site.ask(f"{path}/a/log").status == 204
        for part in ("exec", "attach", "portforward", "proxy"):
            refused = site.ask(f"{path}/a/{part}")
            assert (refused.status, "nothing is connected to" in refused.body) == (403, True), part


def test_use_of_deprecated_fields_warns(site: Site) -> None:
    answer = site.ask("/api/v1/namespaces/default/endpoints")
    assert answer.headers["warning"].startswith('299 - "v1 Endpoints is deprecated in v1.33+')


class TokenAuthorizer(AllowEverything):
    """An authenticator that knows one token of alice, with the permissions to list and watch; it does not know other
    tokens.
    """

    async def authenticate(self, parts: RequestParts) -> User:
        token = dict(parts.headers).get(b"authorization")
        if token == b"Bearer wrong":
            raise Unauthorized
        return User("alice") if token == b"Bearer alice" else User("system:anonymous")

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        return ALLOWED if user.name == "alice" and attributes.verb in ("list", "watch") else NO_OPINION


@pytest.fixture(scope="module")
def guarded() -> Iterator[Site]:
    with running(make(access=TokenAuthorizer())) as site:
        yield site


IN_DEFAULT = 'in API group "" in the namespace "default"'


@pytest.mark.parametrize(
    ("method", "path", "token", "body"),
    [
        ("GET", CONFIG_MAPS, "wrong", status(401, "Unauthorized", "Unauthorized", details="")),
        (
            "GET",
            CONFIG_MAPS,
            "",
            status(
                403,
                "Forbidden",
                f'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" {IN_DEFAULT}',
                ',"details":{"kind":"configmaps"}',
            ),
        ),
        (
            "GET",
            f"{CONFIG_MAPS}/x",
            "alice",
            status(
                403,
                "Forbidden",
                f'configmaps "x" is forbidden: User "alice" cannot get resource "configmaps" {IN_DEFAULT}',
                ',"details":{"name":"x","kind":"configmaps"}',
            ),
        ),
        (
            "DELETE",
            "/apis/apps/v1/nopes",
            "alice",
            status(
                403,
                "Forbidden",
                'nopes.apps is forbidden: User "alice" cannot deletecollection resource "nopes" in API group "apps" '
                "at the cluster scope",
                ',"details":{"group":"apps","kind":"nopes"}',
            ),
        ),
        ("GET", "/nope", "alice", status(403, "Forbidden", 'forbidden: User "alice" cannot get path "/nope"')),
    ],
)
def test_unauthorized_clients_get_no_information_about_resources(
    guarded: Site, method: str, path: str, token: str, body: str
) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    assert guarded.ask(path, method, headers=headers).body == body


def test_authorized_users_are_served(guarded: Site) -> None:
    assert guarded.ask(CONFIG_MAPS, headers={"Authorization": "Bearer alice"}).status == 200


def test_requests_are_counted() -> None:
    labels = {
        "verb": "GET",
        "group": "",
        "version": "v1",
        "resource": "configmaps",
        "subresource": "",
        "scope": "resource",
    }
    counted = {**labels, "dry_run": "", "code": "404"}
    with running() as site:
        before = REGISTRY.get_sample_value("apiserver_request_total", counted) or 0.0
        site.ask(f"{CONFIG_MAPS}/absent")
        assert REGISTRY.get_sample_value("apiserver_request_total", counted) == before + 1
        timed = REGISTRY.get_sample_value("apiserver_request_duration_seconds_count", {**labels, "dry_run": ""})
        assert timed is not None
        assert timed >= 1
