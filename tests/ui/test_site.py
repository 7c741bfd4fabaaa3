"""Tests of the UI page over HTTP: files, headers, access to data, and messages of refusals."""

from __future__ import annotations

import gzip
import http.client
import json
import re
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from ctrlmgr.authentication.user import ANONYMOUS, User
from ctrlmgr.authorization.attributes import path_attributes
from ctrlmgr.errors import Unauthorized
from ctrlmgr.server.authn.known_users_authorizer import KnownUsersAuthorizer
from tests.server.site import TIMEOUT
from tests.ui.site import TOKEN, PageServer

ASSETS = sorted(file.name for file in files("ctrlmgr.ui").joinpath("static").iterdir())


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(served: PageServer, path: str, method: str = "GET", token: str = TOKEN, **headers: str) -> Response:
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=TIMEOUT)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, headers={**({"authorization": f"Bearer {token}"} if token else {}), **given})
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, found, response.read())
    finally:
        connection.close()


@pytest.mark.parametrize("name", ["", *ASSETS])
def test_static_files_are_public_with_security_headers(served: PageServer, name: str) -> None:
    answer = ask(served, f"/ui/{name}", token="")
    assert answer.status == 200
    assert answer.body
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    again = ask(served, f"/ui/{name}", token="", if_none_match=answer.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    head = ask(served, f"/ui/{name}", "HEAD", token="")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == answer.headers["content-length"]
    packed = ask(served, f"/ui/{name}", token="", accept_encoding="gzip")
    if "content-encoding" in packed.headers:
        assert gzip.decompress(packed.body) == answer.body


def test_the_page_has_no_external_references(served: PageServer) -> None:
    index = ask(served, "/ui/", token="").body.decode()
    preloaded = set(re.findall(r'modulepreload" href="(\w+\.js)"', index))
    assert preloaded | {"main.js"} == {name for name in ASSETS if name.endswith(".js")}
    assert set(re.findall(r'(?:href|src)="([^"]+)"', index)) <= set(ASSETS)
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|style=", index)
    for name in ASSETS:
        text = ask(served, f"/ui/{name}", token="").body.decode()
        elsewhere = set(re.findall(r"https?://[\w.]+", text)) - {"http://www.w3.org", "http://127.0.0.1"}
        assert not elsewhere
        assert not name.endswith(".js") or max(map(len, text.splitlines())) <= 120, name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)


def test_the_address_without_a_slash_redirects_to_the_page(served: PageServer) -> None:
    answer = ask(served, "/ui", token="")
    assert (answer.status, answer.headers["location"]) == (308, "ui/")
    assert "/ui" in ask(served, "/").json["paths"]


def test_unknown_paths_are_not_found(served: PageServer) -> None:
    assert ask(served, "/ui/nothing.js", token="").status == 404
    assert ask(served, "/ui/..%2fapi", token="").status in (403, 404)
    assert ask(served, "/ui/api/nothing").json["reason"] == "NotFound"
    assert ask(served, "/ui/", "POST").status == 405
    assert ask(served, "/ui/api/status", "POST").json["reason"] == "MethodNotAllowed"


@pytest.mark.parametrize("name", ["status", "timeline", "events", "kinds", "objects", "change", "queues", "health", ""])
def test_data_needs_authentication(served: PageServer, name: str) -> None:
    assert ask(served, f"/ui/api/{name}", token="").status == 403
    assert ask(served, f"/ui/%61pi/{name}", token="").status == 403
    assert ask(served, f"/ui/api/{name}", token="wrong").status == Unauthorized.code


@pytest.mark.parametrize(
    ("path", "public"),
    [("/ui", True), ("/ui/", True), ("/ui/main.js", True), ("/ui/apix", True), ("/uix", False), ("/ui/api", False)],
)
def test_public_files_of_the_page(path: str, public: bool) -> None:
    authorizer = KnownUsersAuthorizer()
    assert authorizer.authorize(ANONYMOUS, path_attributes("get", path)).allows is public
    assert not authorizer.authorize(ANONYMOUS, path_attributes("post", path)).allows
    assert authorizer.authorize(User("alice", groups=("system:authenticated",)), path_attributes("get", path)).allows


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("timeline?bars=0", "bars is '0'; it must be a whole number from 1 to 600"),
        ("timeline?by=colour", "by is 'colour'; it must be one of actor, resource"),
        ("events?limit=100000", "limit is '100000'; it must be a whole number from 1 to 200"),
        ("events?at=-1", "at is '-1'; it must be a whole number"),
        ("objects", "resource is missing"),
        (f"objects?resource=pods&q={'x' * 1025}", "q is longer than 1024 characters"),
        ("moment?text=whenever", "is not a moment"),
        ("change", "revision is missing"),
    ],
)
def test_invalid_queries_are_refused(served: PageServer, query: str, words: str) -> None:
    answer = ask(served, f"/ui/api/{query}")
    assert answer.status == 400
    assert words in answer.json["message"]


def test_responses_are_compressed_and_never_cached(served: PageServer) -> None:
    answer = ask(served, "/ui/api/events?quiet=1", accept_encoding="gzip, br")
    assert answer.headers["cache-control"] == "no-store"
    assert (
        json.loads(gzip.decompress(answer.body))["events"][0]["revision"] == ask(served, "/ui/api/status").json["head"]
    )
    assert ask(served, "/ui/api/events", "HEAD").body == b""
