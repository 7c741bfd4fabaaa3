"""Tests of hostile paths, queries, headers and methods."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import quote

import pytest

from tests.robustness.conftest import HOSTILE
from tests.robustness.hostile.raw import ask
from tests.robustness.serving import ConfiguredServer
from tests.robustness.statuses import is_status

MAPS = f"/api/v1/namespaces/{HOSTILE}/configmaps"
HIDDEN = "4c3b7e90-hidden-from-you"
"""The content of another object; no response to a request in this module may contain this string."""


@pytest.fixture(scope="module", autouse=True)
def elsewhere(target: ConfiguredServer) -> str:
    """The name of an object in another namespace; no path below the test's namespace may lead to this object."""
    assert target.request("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})[0] == 201
    hidden = {"metadata": {"name": "hidden"}, "data": {"secret": HIDDEN}}
    assert target.request("POST", "/api/v1/namespaces/elsewhere/configmaps", hidden)[0] == 201
    for number in range(5):
        assert target.request("POST", MAPS, {"metadata": {"name": f"page-{number}"}})[0] == 201
    return "hidden"


PATHS = [
    f"{MAPS}/../../elsewhere/configmaps/hidden",
    f"{MAPS}/..%2f..%2felsewhere%2fconfigmaps%2fhidden",
    f"{MAPS}/%2e%2e/%2e%2e/elsewhere/configmaps/hidden",
    f"{MAPS}/../../../../../../etc/passwd",
    f"{MAPS}/%00",
    f"{MAPS}/hidden%00",
    f"{MAPS}/%ff",
    f"{MAPS}/%zz",
    f"{MAPS}/a;drop%20table%20event",
    f"{MAPS}/a%0d%0aSet-Cookie:%20a=b",
    f"/api/v1/namespaces/{HOSTILE}%2f..%2felsewhere/configmaps/hidden",
    "/api/v1/namespaces/%2e%2e/configmaps",
    "/api/v1/namespaces/a/nothings",
    "/apis/none.example.com/v1/things",
    "/apis/apps/v99/deployments",
    f"{MAPS}/a/status/b/c",
    f"/api/v1/{'a' * 5000}",
]


@pytest.mark.parametrize("path", PATHS)
def test_path_traversal_is_refused(target: ConfiguredServer, path: str) -> None:
    reply = ask(target.site, "GET", path)
    assert reply.code in (400, 404), reply
    assert HIDDEN.encode() not in reply.body
    assert b"root:" not in reply.body
    if reply.headers["content-type"] == "application/json":
        assert is_status(reply)


def test_doubled_slashes_are_normalized(target: ConfiguredServer) -> None:
    for path in (MAPS.replace("/configmaps", "//configmaps"), "//api//v1//namespaces//elsewhere//configmaps//hidden"):
        reply = ask(target.site, "GET", path)
        assert reply.code in (301, 307, 400, 404), reply
        assert HIDDEN.encode() not in reply.body


def token(**fields: Any) -> str:
    return urlsafe_b64encode(str(fields).replace("'", '"').encode()).decode().rstrip("=")


QUERIES = [
    ("labelSelector", "a=b,", 400),
    ("labelSelector", "a in (b", 400),
    ("labelSelector", "a=b' OR '1'='1", 400),
    ("labelSelector", "a=b; drop table event", 400),
    ("labelSelector", "a==b==c", 400),
    ("labelSelector", "(" * 10_000, 400),
    ("labelSelector", "\x00a in (b", 200),  # Kubernetes stops reading here, too
    ("labelSelector", "a" * 64, 400),
    ("labelSelector", "a=" + "b" * 64, 400),
    ("fieldSelector", "metadata.name='x' OR 1=1", 400),
    ("fieldSelector", "spec.none=1", 400),
    ("fieldSelector", "data.secret=a", 400),
    ("fieldSelector", "metadata.name", 400),
    ("fieldSelector", "=" * 1000, 400),
    ("limit", "-1", 200),
    ("limit", "abc", 400),
    ("limit", "1e3", 400),
    ("limit", "99999999999999999999", 400),
    ("limit", "1", 200),
    ("timeoutSeconds", "soon", 400),
    ("continue", "garbage", 400),
    ("continue", "e30", 400),
    ("continue", "A" * 10_000, 400),
    ("continue", token(v="meta.k8s.io/v1", rv=5, start="../elsewhere/"), 400),
    ("continue", token(v="meta.k8s.io/v1", rv=5, start="/../elsewhere/hidden"), 400),
    ("continue", token(v="meta.k8s.io/v9", rv=5, start="a"), 400),
    ("continue", token(v="meta.k8s.io/v1", start="a"), 400),
    ("continue", token(v="meta.k8s.io/v1", rv=5), 400),
    ("resourceVersion", "abc", 400),
    ("resourceVersion", "-1", 400),
    ("resourceVersion", "1.5", 400),
    ("resourceVersion", "99999999999999999999", 400),
    ("resourceVersion", "٣", 400),
    ("resourceVersionMatch", "Exact", 422),
    ("sendInitialEvents", "true", 422),
]


@pytest.mark.parametrize(("name", "value", "code"), QUERIES)
def test_queries_are_checked(target: ConfiguredServer, name: str, value: str, code: int) -> None:
    reply = ask(target.site, "GET", f"{MAPS}?{name}={quote(value)}")
    assert reply.code == code, reply
    assert code == 200 or is_status(reply)
    assert HIDDEN.encode() not in reply.body


def test_a_forged_continue_token_cannot_leave_its_namespace(target: ConfiguredServer) -> None:
    listed = ask(target.site, "GET", f"{MAPS}?limit=1").fields
    revision = int(listed["metadata"]["resourceVersion"])
    for start in ("a", "elsewhere/hidden\x00", "zzz", "hidden", "\u0000"):
        forged = token(v="meta.k8s.io/v1", rv=revision, start=start)
        reply = ask(target.site, "GET", f"{MAPS}?limit=100&continue={forged}")
        assert reply.code in (200, 400), reply
        assert HIDDEN.encode() not in reply.body


@pytest.mark.parametrize("match", ["Exact", "NotOlderThan"])
def test_a_future_revision_is_awaited_briefly_and_then_refused(target: ConfiguredServer, match: str) -> None:
    began = time.monotonic()
    reply = ask(target.site, "GET", f"{MAPS}?resourceVersion=999999999&resourceVersionMatch={match}")
    took = time.monotonic() - began
    assert (reply.code, reply.fields["reason"], reply.headers["retry-after"]) == (504, "Timeout", "1")
    assert is_status(reply)
    assert took > 2.5


def test_a_watch_of_a_future_revision_is_silent_until_its_timeout(target: ConfiguredServer) -> None:
    reply = ask(target.site, "GET", f"{MAPS}?watch=true&resourceVersion=999999999&timeoutSeconds=1")
    assert (reply.code, reply.body) == (200, b"")


def test_stale_or_foreign_objects_conflict(target: ConfiguredServer) -> None:
    one = f"{MAPS}/page-1"
    stale = b'{"metadata":{"name":"page-1","resourceVersion":"1"}}'
    other = b'{"preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}'
    for reply in (ask(target.site, "PUT", one, stale), ask(target.site, "DELETE", one, other)):
        assert (reply.code, is_status(reply)) == (409, True), reply
    renamed = ask(target.site, "PUT", one, b'{"metadata":{"name":"page-2"}}')
    assert (renamed.code, is_status(renamed)) == (400, True)


HEADERS = [
    ("POST", {"content-type": "text/plain"}, 415),
    ("POST", {"content-type": "application/xml"}, 415),
    ("POST", {"content-type": "application/json; charset=utf-16"}, 422),  # decoded as any JSON: the object has no name
    ("POST", {"content-type": "x" * 10_000}, 415),
    ("PATCH", {"content-type": "application/json"}, 415),
    ("GET", {"accept": "application/xml"}, 406),
    ("GET", {"accept": "text/html"}, 406),
    ("GET", {"accept": "application/json;as=Table;v=v9;g=none"}, 406),
    ("GET", {"accept": ";;;,,,"}, 406),
]


@pytest.mark.parametrize(("method", "headers", "code"), HEADERS)
def test_unknown_media_types_are_refused(
    target: ConfiguredServer, method: str, headers: dict[str, str | None], code: int
) -> None:
    path = MAPS if method != "PATCH" else f"{MAPS}/page-1"
    reply = ask(target.site, method, path, b"{}" if method != "GET" else b"", headers)
    assert (reply.code, is_status(reply)) == (code, True), reply


@pytest.mark.parametrize("method", ["PROPFIND", "TRACE", "CONNECT", "OPTIONS", "PUT", "MERGE"])
def test_unsupported_methods_are_refused(target: ConfiguredServer, method: str) -> None:
    reply = ask(target.site, method, MAPS)
    assert reply.code == 405, reply
    assert is_status(reply)


def test_an_unknown_method_is_a_malformed_request(target: ConfiguredServer) -> None:
    assert ask(target.site, "EXPLODE", MAPS).code in (400, 405)


def test_echoed_values_cannot_break_out_of_their_header(target: ConfiguredServer) -> None:
    body = b'{"metadata":{"name":"warned"},"spec\\r\\nset-cookie: a=b":1}'
    reply = ask(target.site, "POST", MAPS, body)
    assert reply.code == 201, reply
    assert "set-cookie" not in reply.headers
    assert "unknown field" in reply.headers["warning"]
