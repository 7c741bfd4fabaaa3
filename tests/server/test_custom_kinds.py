"""Tests of custom kinds that are defined and first used while the server handles other requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.extensions.compiled_schema import Schema
from ctrlmgr.kinds.apiextensions.custom_resource_definition import DefinitionStrategy
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.server.describe.discovery_documents import Discovery
from tests.controllers.customresourcedefinitions.defined import definition, established
from tests.server.site import Site, add, make, running

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
EVERYTHING = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
LOOP = "server under test"
"""The name of the event loop's thread; work on this thread delays all requests."""


class Threads:
    """Records on which threads a function is called."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def noting(self, call: Any) -> Any:
        def noted(*arguments: Any, **named: Any) -> Any:
            self.names.append(threading.current_thread().name)
            return call(*arguments, **named)

        return noted


@pytest.fixture
def site() -> Iterator[Site]:
    made = make()
    add(made.log, established(definition()))
    with running(made) as site:
        yield site


def test_a_schema_is_compiled_off_the_loop_at_the_first_write(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads()
    monkeypatch.setattr(Schema, "prepare", threads.noting(Schema.prepare))
    assert site.ask(WIDGETS).json["items"] == []
    assert threads.names == [], "where there is no object nothing is compiled"
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {}}
    assert site.ask(WIDGETS, "POST", body).status == 201
    assert threads.names
    assert LOOP not in threads.names
    threads.names.clear()
    assert site.ask(f"{WIDGETS}/a").json["spec"] == {"size": 3}
    assert threads.names == [], "it is compiled once"


def named(plural: str, revision: int, group: str = "example.com") -> Object:
    """Return an established CustomResourceDefinition with this plural name."""
    fields = definition(plural=plural, kind=plural.title())
    fields["metadata"]["name"], fields["spec"]["group"] = f"{plural}.{group}", group
    return established(fields).at(revision)


def test_kinds_added_one_by_one_equal_kinds_added_at_once() -> None:
    objects = [named("as", 1), named("bs", 2), named("cs", 3, "apps"), named("ds", 4, "z.example.com"), named("as", 5)]
    one_by_one = builtin_kinds()
    for end in (1, 2, 3, 4):
        one_by_one.refresh(objects[:end])
    one_by_one.refresh(objects[1:4])
    one_by_one.refresh(objects[1:])
    at_once = builtin_kinds()
    at_once.refresh(objects[1:])
    assert one_by_one.groups == at_once.groups
    assert {kind.gvk for kind in one_by_one} == {kind.gvk for kind in at_once}
    assert [kind.gvk for kind in at_once.custom()] == [kind.gvk for kind in one_by_one.custom()]
    groups = {group.name: group.versions for group in at_once.groups}
    assert groups["apps"] == ("v1",)
    assert [*groups][-2:] == ["example.com", "z.example.com"]


def test_discovery_rebuilds_changed_documents() -> None:
    kinds = builtin_kinds()
    discovery = Discovery(kinds)
    before = discovery.answer("/apis", EVERYTHING)
    assert discovery.made("/apis", EVERYTHING) is before
    kinds.refresh([named("as", 1)])
    assert discovery.made("/apis", EVERYTHING) is None, "the kinds have changed"
    after = discovery.answer("/apis", EVERYTHING)
    assert before is not None
    assert after is not None
    told = {item["metadata"]["name"]: item for item in json.loads(after.body)["items"]}
    known = {item["metadata"]["name"]: item for item in json.loads(before.body)["items"]}
    assert [each["resource"] for each in told.pop("example.com")["versions"][0]["resources"]] == ["as"]
    assert told == known


def test_a_definition_is_validated_off_the_loop(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads()
    monkeypatch.setattr(DefinitionStrategy, "validate", threads.noting(DefinitionStrategy.validate))
    fields = definition(plural="gadgets", kind="Gadget")
    fields["metadata"]["annotations"] = {"what": "it is for " * 5000}
    answer = site.ask("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "POST", json.dumps(fields).encode())
    assert answer.status == 201
    assert threads.names == [], "it is in a process of its own"


def test_a_head_is_answered_where_a_get_is(site: Site) -> None:
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {}}
    site.ask(WIDGETS, "POST", body)
    for path in (WIDGETS, f"{WIDGETS}/a", f"{WIDGETS}/none"):
        got, head = site.ask(path), site.ask(path, "HEAD")
        assert (head.status, head.body) == (got.status, "")
        assert head.headers["content-length"] == str(len(got.body))


def test_an_unsupported_method_has_no_verb(site: Site) -> None:
    refused = site.ask(f"{WIDGETS}/a", "PROPFIND")
    assert refused.status == 405
    assert refused.json["message"] == ' is not supported on resources of kind "widgets.example.com"'
