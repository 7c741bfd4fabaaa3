"""Tests of `/openapi/v2` with the documents of extension servers: they are merged with ours in JSON and protobuf, are
downloaded once for each ETag, and a malformed one harms no other.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen

import msgspec
import pytest

from ctrlmgr.server.aggregating.remote_swagger import RemoteSwagger, RemoteSwaggers
from tests.server.aggregating.extension import Extension, answer
from tests.server.aggregating.registering import SERVICES, register
from tests.server.describe import gnostic_reader
from tests.server.site import Site

PATH = "/apis/ext.example/w1/things"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
DOCUMENT: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "other", "version": "1"},
    "paths": {
        path: {"get": {"responses": {"200": {"description": "OK", "schema": {"$ref": f"#/definitions/{name}"}}}}}
        for path, name in ((PATH, "Thing"), ("/apis/ext.example/w2/others", "Other"), ("/api/v1/pods", "Other"))
    },
    "definitions": {
        "Thing": {"type": "object", "properties": {"metadata": {"$ref": f"#/definitions/{META}"}}},
        "Other": {"type": "string"},
        META: {"type": "object", "description": "another description"},
    },
}
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


def serves(document: Any, etag: str = "") -> Any:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if head.split()[1] != "/openapi/v2":
            writer.write(answer("404 Not Found", b"{}"))
        elif etag and f"if-none-match: {etag}\r\n" in head:
            writer.write(answer("304 Not Modified", b""))
        else:
            writer.write(answer("200 OK", msgspec.json.encode(document), *([f"etag: {etag}"] if etag else [])))
        return True

    return behave


def downloads(ext: Extension) -> list[str]:
    return [
        head
        for head in ext.heads
        if head.startswith("GET /openapi/v2 ") and "remote-user: system:aggregator" in head.lower()
    ]


def touch(site: Site, name: str, priority: int) -> None:
    body = {"spec": {"versionPriority": priority}}
    assert site.ask(f"{SERVICES}/{name}", "PATCH", body, MERGE_PATCH).status == 200


def test_the_document_of_a_server_is_merged(site: Site, ext: Extension) -> None:
    before = site.ask("/openapi/v2")
    ext.behaviour = serves(DOCUMENT, '"one"')
    register(site, "w1", ext, ext.ca)
    while (after := site.ask("/openapi/v2")).headers["etag"] == before.headers["etag"]:
        pass
    document = after.json
    assert document["info"] == before.json["info"]
    assert document["paths"] == {**before.json["paths"], PATH: DOCUMENT["paths"][PATH]}
    renamed = {"type": "object", "properties": {"metadata": {"$ref": f"#/definitions/{META}_v2"}}}
    added = {"Thing": renamed, f"{META}_v2": DOCUMENT["definitions"][META]}
    assert document["definitions"] == {**before.json["definitions"], **added}
    with urlopen(Request(f"{site.url}/openapi/v2", headers={"Accept": PROTOBUF})) as response:
        assert gnostic_reader.read("Document", response.read()) == document


def test_a_document_is_downloaded_again_when_its_etag_changes(site: Site, ext: Extension) -> None:
    before = site.ask("/openapi/v2").headers["etag"]
    ext.behaviour, asked = serves({}, '"one"'), len(downloads(ext))
    touch(site, "w1.ext.example", 11)
    while not any('if-none-match: "one"' in head for head in downloads(ext)[asked:]):
        pass  # the document of the other APIService may be downloaded first
    assert site.ask("/openapi/v2").headers["etag"] == before
    changed = {**DOCUMENT, "definitions": {**DOCUMENT["definitions"], "Thing": {"type": "integer"}}}
    ext.behaviour = serves(changed, '"two"')
    touch(site, "w1.ext.example", 12)
    while (document := site.ask("/openapi/v2").json)["definitions"]["Thing"] != {"type": "integer"}:
        pass
    assert PATH in document["paths"]


@pytest.mark.parametrize(
    "document",
    [
        {"paths": {PATH: []}},
        {"paths": {PATH: {"invented": {}}}},
        {"paths": {PATH: {}}, "definitions": {"Thing": {"type": "integer", "properties": 1}}},
        [],
    ],
)
def test_a_malformed_document_harms_no_other(site: Site, ext: Extension, document: Any) -> None:
    before = site.ask("/openapi/v2").headers["etag"]
    ext.behaviour, asked = serves(document), len(downloads(ext))
    touch(site, "w1.ext.example", 20 + asked)
    while len(downloads(ext)) < asked + 2:  # it failed, and is asked again
        pass
    assert site.ask("/openapi/v2").headers["etag"] == before


def test_a_removed_server_has_no_document(site: Site, ext: Extension) -> None:
    assert PATH in site.ask("/openapi/v2").json["paths"]
    assert site.ask(f"{SERVICES}/w1.ext.example", "DELETE").status == 200
    while PATH in (document := site.ask("/openapi/v2").json)["paths"]:
        pass
    assert "Thing" not in document["definitions"]


def test_the_documents_are_ordered_by_the_priority_of_their_groups() -> None:
    def service(group: str, name: str, priority: int) -> Any:
        return SimpleNamespace(group=group, name=name, group_priority=priority)

    named = {
        ("low", "v1"): service("low", "v1.low", 10),
        ("high", "v1"): service("high", "z.high", 5),
        ("high", "v2"): service("high", "b.high", 30),
        ("none", "v1"): service("none", "v1.none", 50),
    }
    swaggers = RemoteSwaggers(SimpleNamespace(services=named, on_change=lambda listener: None))  # type: ignore[arg-type]  # a server with the two members that are used
    swaggers._answers = {key: RemoteSwagger("", {"of": key}) for key in named if key[0] != "none"}
    assert [each["of"] for each in swaggers.in_order()] == [("high", "v2"), ("high", "v1"), ("low", "v1")]
