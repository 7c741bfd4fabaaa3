"""Tests that direct writes of controllers result in the same managedFields as requests through the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.client import CONTROLLER_MANAGER, EngineClient, FieldMarks
from ctrlmgr.engine.blocking_driver import Driver
from ctrlmgr.engine.request_options import Requester
from tests.engine.stage import Stage, builtin_kinds

Fields = dict[str, Any]
ENDPOINTS: Fields = {"kind": "Endpoints", "apiVersion": "v1"}
SLICE: Fields = {"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4"}
PATHS = {
    "Endpoints": "/api/v1/namespaces/shop/endpoints",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices",
}
OWNER = {"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "1234"}


def addresses(*ips: str) -> Fields:
    return {"subsets": [{"addresses": [{"ip": ip} for ip in ips], "ports": [{"port": 80, "protocol": "TCP"}]}]}


def endpoints(*ips: str) -> Fields:
    return {"endpoints": [{"addresses": [ip], "conditions": {"ready": True}} for ip in ips]}


def through_the_api(stage: Stage, fields: Fields, manager: str) -> None:
    path = PATHS[fields["kind"]]
    place = f"{path}/{fields['metadata']['name']}"
    exists = stage.send("GET", place).code == 200
    query = {"fieldManager": manager}
    answer = stage.send("PUT" if exists else "POST", place if exists else path, fields, query=query)
    assert answer.code in (200, 201), answer.body


def straight(stage: Stage, fields: Fields) -> None:
    run = Driver(stage.log, stage.feed, stage.cacher, patience=0).run
    client = EngineClient(
        stage.engine,
        lambda operation, cause=None, fence=None: run(operation),
        Requester("c"),
        manager=CONTROLLER_MANAGER,
        canonical=True,
    )
    wanted = Object.from_dict(fields)
    current = stage.log.get(wanted.resource, wanted.key)
    if current is None:
        client.create(wanted)
    else:
        client.update(Object(wanted.resource, wanted.body, current.revision))


def story(*writes: Mapping[str, Any], direct: bool) -> list[Fields]:
    """Make writes at intervals of one second; `alice` marks the writes of a user, and the controller makes the other
    writes.
    """
    stage = Stage()
    stage.namespace("shop")
    for write in writes:
        stage.clock.step(1)
        fields = {key: value for key, value in write.items() if key != "alice"}
        if "alice" in write:
            through_the_api(stage, fields, "alice")
        elif direct:
            straight(stage, fields)
        else:
            through_the_api(stage, fields, CONTROLLER_MANAGER)
    kept = stage.send("GET", f"{PATHS[writes[0]['kind']]}/web").body["metadata"]
    return kept["managedFields"]  # type: ignore[no-any-return]  # JSON


def meta(**metadata: Any) -> Fields:
    return {"metadata": {"name": "web", "namespace": "shop", **metadata}}


STORIES = {
    "created": [ENDPOINTS | meta(labels={"a": "b"}) | addresses("10.0.0.1")],
    "created with nothing in it": [ENDPOINTS | meta(labels={"a": "b"})],
    "changed": [
        ENDPOINTS | meta(labels={"a": "b"}) | addresses("10.0.0.1"),
        ENDPOINTS | meta(labels={"a": "b"}) | addresses("10.0.0.1", "10.0.0.2"),
    ],
    "changed into nothing": [
        ENDPOINTS | meta(labels={"a": "b"}, annotations={"x": "1"}) | addresses("10.0.0.1"),
        ENDPOINTS | meta(labels={"a": "b"}),
    ],
    "a client's label stays, its addresses go": [
        ENDPOINTS | meta(labels={"a": "b"}) | addresses("10.0.0.1"),
        ENDPOINTS | meta(labels={"a": "b", "mine": "1"}) | addresses("10.0.0.9") | {"alice": True},
        ENDPOINTS | meta(labels={"a": "b", "mine": "1"}) | addresses("10.0.0.1"),
    ],
    "a slice": [
        SLICE
        | meta(generateName="web-", ownerReferences=[OWNER], labels={"a": "b"})
        | endpoints("10.0.0.1")
        | {"ports": [{"name": "", "port": 80, "protocol": "TCP"}]}
    ],
    "a slice changes": [
        SLICE | meta(ownerReferences=[OWNER]) | endpoints("10.0.0.1"),
        SLICE | meta(ownerReferences=[OWNER], annotations={"x": "1"}) | endpoints("10.0.0.1", "10.0.0.2"),
        SLICE | meta(ownerReferences=[OWNER]) | endpoints(),
    ],
}


@pytest.mark.parametrize("writes", STORIES.values(), ids=STORIES.keys())
def test_entries_equal_those_of_an_api_write(writes: list[Fields]) -> None:
    assert story(*writes, direct=True) == story(*writes, direct=False) != []


def test_a_write_without_changes_is_not_stored() -> None:
    stage = Stage()
    stage.namespace("shop")
    fields = ENDPOINTS | meta(labels={"a": "b"}) | addresses("10.0.0.1")
    straight(stage, fields)
    before = stage.log.head().revision
    stage.clock.step(5)
    straight(stage, fields)
    assert stage.log.head().revision == before


def test_an_internal_kind_has_no_managed_fields() -> None:
    claim = Object(Resource("internal.ctrlmgr.io", "nodeports"), b'{"kind":"NodePort","metadata":{"name":"1"}}')
    assert FieldMarks(builtin_kinds()).marked(None, claim, "2026-01-01T00:00:00Z") is claim


UID, KNOWN, ODD = "0b1c2d3e-0001", "kube-controller-manager", 'q"uote'
VARIANTS: list[Fields] = [
    {},
    {"labels": {"a": "b"}},
    {"labels": {"a": "c"}},
    {"labels": {"b": "a"}},
    {"annotations": {"a": "b"}},
    {"annotations": {"2026-01-01T00:00:01Z": ""}},
    {"generateName": "web-"},
    {"finalizers": ["example.com/a"]},
    {"finalizers": ["example.com/b"]},
    *({"ownerReferences": [{**OWNER, "uid": uid}]} for uid in ("1234", UID, KNOWN, ODD, "")),
    {"ownerReferences": []},
    *({"ownerReferences": [{**OWNER, "uid": UID}, {**OWNER, "uid": uid}]} for uid in ("1234", KNOWN)),
    {"ports": None},
    {"ports": []},
    {"ports": [{"port": 80}]},
    {"ports": [{"port": 81}]},
]


@pytest.mark.parametrize("first", VARIANTS, ids=str)
def test_cached_entries_equal_computed_entries(first: Fields) -> None:
    kinds = builtin_kinds()
    for then in VARIANTS:
        knowing = FieldMarks(kinds)
        # at the third write, the entry is cached
        for second, variant in enumerate((first, first, first, then, then, then)):
            ports = {"ports": variant["ports"]} if "ports" in variant else {}
            metadata = {key: value for key, value in variant.items() if key != "ports"}
            new, now = Object.from_dict({**SLICE, **meta(**metadata), **ports}), f"2026-01-01T00:00:0{second}Z"
            assert knowing.marked(None, new, now).body == FieldMarks(kinds).marked(None, new, now).body
