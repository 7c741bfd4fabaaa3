"""Tests of the discovery of extension servers in the merged document: it is current, stale or invalid, and causes no
delays.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest

from ctrlmgr.server.aggregating.discovered_resources import aggregated_resources, legacy_resources
from tests.server.aggregating.extension import Extension, answer
from tests.server.aggregating.registering import register
from tests.server.site import Site

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
LEGACY = {
    "kind": "APIResourceList",
    "groupVersion": "another.example/v7",
    "resources": [
        {"name": "things/status", "namespaced": True, "kind": "Thing", "verbs": ["get"]},
        {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get", "list"]},
        {"name": "lonely/part", "namespaced": False, "kind": "", "verbs": ["get"]},
    ],
}


def version(site: Site, name: str) -> dict[str, Any]:
    """Return the entry of an API version in the merged discovery document."""
    found = site.ask("/apis", headers={"Accept": V2}).json["items"]
    group = next(each for each in found if each["metadata"]["name"] == "ext.example")
    entry: dict[str, Any] = next(each for each in group["versions"] if each["version"] == name)
    return entry


def eventually(site: Site, name: str, freshness: str) -> dict[str, Any]:
    """Wait until the entry of an API version has this freshness."""
    for _ in range(2000):
        if (found := version(site, name))["freshness"] == freshness:
            return found
    raise AssertionError(found)


def test_a_server_with_version_documents_only_is_current(site: Site, ext: Extension) -> None:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        is_version = head.startswith("GET /apis/ext.example/w1 ")
        writer.write(answer("200 OK" if is_version else "404 Not Found", msgspec.json.encode(LEGACY)))
        return True

    ext.behaviour = behave
    register(site, "w1", ext, ext.ca)
    found = eventually(site, "w1", "Current")
    assert [each["resource"] for each in found["resources"]] == ["things", "lonely"]
    assert found["resources"][0]["subresources"][0]["subresource"] == "status"


def test_a_server_with_an_aggregated_document_is_requested_once_and_checked(site: Site, ext: Extension) -> None:
    thing = {"resource": "things", "scope": "Namespaced", "verbs": ["get"]}
    listed = {"items": [{"metadata": {"name": "ext.example"}, "versions": [{"version": "w2", "resources": [thing]}]}]}

    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer("200 OK", msgspec.json.encode(listed), f"content-type: {V2}"))
        return True

    ext.behaviour = behave
    register(site, "w2", ext, ext.ca)
    assert eventually(site, "w2", "Current")["resources"][0]["responseKind"] == {"group": "", "version": "", "kind": ""}
    register(site, "w3", ext, ext.ca)  # a version that the document does not have
    assert eventually(site, "w3", "Current") == {"version": "w3", "freshness": "Current"}


def test_a_server_that_does_not_answer_is_stale_and_delays_no_document(site: Site, ext: Extension) -> None:
    async def behave(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.read()
        return False

    ext.behaviour = behave
    register(site, "w4", ext, ext.ca)
    began = time.monotonic()
    assert version(site, "w4") == {"version": "w4", "freshness": "Stale"}
    assert site.ask("/apis").status == 200
    assert time.monotonic() - began < 4  # less than the timeout of the server's document


def test_documents_of_another_form_are_refused() -> None:
    with pytest.raises(msgspec.MsgspecError):
        aggregated_resources(b"[]")
    scopes = [{"name": "a", "namespaced": True}, {"name": "a/b", "namespaced": False}]
    with pytest.raises(ValueError, match="do not match"):
        legacy_resources(msgspec.json.encode({"resources": scopes}))
