"""Tests of the OpenAPI documents of extension servers: the documents are merged with ours, and are downloaded once for
each digest.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tests.server.aggregating.extension import Extension, answer
from tests.server.aggregating.registering import register
from tests.server.site import Site

DOCUMENT = {"openapi": "3.0.0", "paths": {"/apis/ext.example/s1/things": {}}}


def serves(url: str, document: Any) -> Any:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        path = head.split()[1]
        if path == "/openapi/v3":
            index = {"paths": {"apis/ext.example/s1": {"serverRelativeURL": url}}}
            writer.write(answer("200 OK", msgspec.json.encode(index)))
        elif path == url:
            writer.write(answer("200 OK", msgspec.json.encode(document)))
        else:
            writer.write(answer("404 Not Found", b"{}"))
        return True

    return behave


def index(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = site.ask("/openapi/v3").json["paths"]
    return found


def test_the_document_of_a_server_is_listed_and_served(site: Site, ext: Extension) -> None:
    ext.behaviour = serves("/openapi/v3/apis/ext.example/s1?hash=A", DOCUMENT)
    register(site, "s1", ext, ext.ca)
    while "apis/ext.example/s1" not in (found := index(site)):
        pass
    assert "api/v1" in found
    url = found["apis/ext.example/s1"]["serverRelativeURL"]
    served = site.ask(url)
    assert served.json == DOCUMENT
    assert "immutable" in served.headers["cache-control"]
    assert site.ask(url, headers={"If-None-Match": served.headers["etag"]}).status == 304


def test_a_document_is_downloaded_again_when_its_digest_changes(site: Site, ext: Extension) -> None:
    before = index(site)["apis/ext.example/s1"]
    ext.behaviour = serves("/openapi/v3/apis/ext.example/s1?hash=B", {**DOCUMENT, "info": {"title": "new"}})
    label = {"metadata": {"labels": {"look": "again"}}, "spec": {"versionPriority": 11}}
    headers = {"Content-Type": "application/merge-patch+json"}
    site.ask("/apis/apiregistration.k8s.io/v1/apiservices/s1.ext.example", "PATCH", label, headers)
    while index(site)["apis/ext.example/s1"] == before:
        pass
    assert site.ask("/openapi/v3/apis/ext.example/s1").json["info"] == {"title": "new"}


def test_an_index_with_foreign_urls_is_not_followed(site: Site, ext: Extension) -> None:
    before = index(site)["apis/ext.example/s1"]
    ext.behaviour = serves("https://elsewhere.example/openapi", {})
    headers = {"Content-Type": "application/merge-patch+json"}
    asked = len(ext.heads)
    body = {"spec": {"versionPriority": 12}}
    site.ask("/apis/apiregistration.k8s.io/v1/apiservices/s1.ext.example", "PATCH", body, headers)
    while not any(head.startswith("GET /openapi/v3 ") for head in ext.heads[asked:]):
        index(site)
    assert index(site)["apis/ext.example/s1"] == before


SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "old"},
    "paths": {
        "/apis/ext.example/s2/things": {
            "post": {
                "consumes": ["application/json"],
                "produces": ["application/json"],
                "parameters": [
                    {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/Thing"}},
                    {"name": "dryRun", "in": "query", "type": "string"},
                ],
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}}},
            }
        }
    },
    "definitions": {
        "Thing": {"type": "object", "properties": {"part": {"$ref": "#/definitions/Part", "description": "a part"}}},
        "Part": {"type": "string"},
    },
}
_THING = {"$ref": "#/components/schemas/Thing"}
CONVERTED = {
    "openapi": "3.0.0",
    "info": {"title": "old"},
    "paths": {
        "/apis/ext.example/s2/things": {
            "post": {
                "requestBody": {"content": {"application/json": {"schema": _THING}}},
                "parameters": [{"name": "dryRun", "in": "query", "schema": {"type": "string"}}],
                "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": _THING}}}},
            }
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "type": "object",
                "properties": {
                    "part": {"description": "a part", "allOf": [{"$ref": "#/components/schemas/Part"}]},
                },
            },
            "Part": {"type": "string"},
        }
    },
}


def test_a_server_with_openapi_v2_alone_is_converted(site: Site, ext: Extension) -> None:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if head.split()[1] != "/openapi/v2":
            writer.write(answer("404 Not Found", b"{}"))
        elif 'if-none-match: "one"' in head:
            writer.write(answer("304 Not Modified", b""))
        else:
            writer.write(answer("200 OK", msgspec.json.encode(SWAGGER), 'etag: "one"'))
        return True

    ext.behaviour = behave
    register(site, "s2", ext, ext.ca)
    while "apis/ext.example/s2" not in (before := index(site)):
        pass
    assert site.ask("/openapi/v3/apis/ext.example/s2").json == CONVERTED
    asked = len(ext.heads)
    headers = {"Content-Type": "application/merge-patch+json"}
    body = {"spec": {"versionPriority": 13}}
    site.ask("/apis/apiregistration.k8s.io/v1/apiservices/s2.ext.example", "PATCH", body, headers)
    while not any('if-none-match: "one"' in head for head in ext.heads[asked:]):
        index(site)
    assert index(site)["apis/ext.example/s2"] == before["apis/ext.example/s2"]


def test_an_openapi_v2_document_that_is_none_harms_no_other(site: Site, ext: Extension) -> None:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        found = head.split()[1] == "/openapi/v2"
        writer.write(answer("200 OK", b'{"paths":{"/a":[]},"definitions":[1]}') if found else answer("404 No", b""))
        return True

    ext.behaviour = behave
    asked = len(ext.heads)
    register(site, "s3", ext, ext.ca)
    while sum(head.startswith("GET /openapi/v2 ") for head in ext.heads[asked:]) < 2:  # it is asked again
        index(site)
    assert "apis/ext.example/s3" not in index(site)
    assert "api/v1" in index(site)
