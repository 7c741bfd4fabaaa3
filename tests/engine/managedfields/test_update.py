"""Tests of field managers after creates, updates and patches."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ctrlmgr.engine.managedfields import FieldManager, keep_timestamps
from ctrlmgr.engine.managedfields.managers import ANCIENT
from ctrlmgr.schema.definitions import Definitions
from tests.engine.managedfields.stored import APPS, CORE, ManagedEntry, StoredObject, field_manager, fields


def at(second: int) -> str:
    return f"2024-01-01T00:00:{second:02}Z"


SERVICE_SPEC: dict[str, Any] = {
    "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}, {"port": 9, "protocol": "UDP"}],
    "selector": {"app": "a"},
    "type": "ClusterIP",
}


def test_the_creator_manages_all_fields_except_the_servers() -> None:
    stored = StoredObject(f"{CORE}.Service")
    metadata = {"name": "s", "namespace": "n", "uid": "1", "generation": 1, "labels": {"b": "1", "a": "1"}}
    stored.update("me", stored.body(metadata=metadata, spec=SERVICE_SPEC, status={"loadBalancer": {}}))
    [managed] = stored.managed
    item: dict[str, Any] = {".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}
    assert managed.fields == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}, "f:b": {}}},
        "f:spec": {
            "f:ports": {
                ".": {},
                'k:{"port":9,"protocol":"UDP"}': item,
                'k:{"port":80,"protocol":"TCP"}': {**item, "f:name": {}},
            },
            "f:selector": {},
            "f:type": {},
        },
    }


def test_entries_are_formatted_like_go() -> None:
    stored = StoredObject(f"{CORE}.Service")
    stored.update("me", stored.body(metadata={"labels": {"b": "1", "a": "1"}}, spec=SERVICE_SPEC))
    stored.merge("you", subresource="status", status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})
    assert stored.object is not None
    first, second = stored.object["metadata"]["managedFields"]
    assert list(first) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]
    assert list(second) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"]
    assert list(first["fieldsV1"]["f:metadata"]["f:labels"]) == [".", "f:a", "f:b"]
    ports = first["fieldsV1"]["f:spec"]["f:ports"]
    assert list(ports) == [".", 'k:{"port":9,"protocol":"UDP"}', 'k:{"port":80,"protocol":"TCP"}']
    assert list(ports['k:{"port":80,"protocol":"TCP"}']) == [".", "f:name", "f:port", "f:protocol", "f:targetPort"]


def test_structs_in_new_items_are_managed_with_the_fields_go_always_writes() -> None:
    manager = field_manager(f"{CORE}.Pod")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}}
    created = manager.update(None, pod, "me", at(1))
    container: dict[str, Any] = {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}
    assert created["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"] == {
        "f:containers": {'k:{"name":"c"}': container},
        "f:nodeName": {},
    }


def test_a_field_go_always_writes_is_managed_after_it_is_set() -> None:
    stored = StoredObject("io.k8s.api.discovery.v1.EndpointSlice", "discovery.k8s.io/v1")
    assert stored.update("me", stored.body(addressType="IPv4", endpoints=None, ports=None))[0].fields == {
        "f:addressType": {}
    }
    assert stored.merge("you", endpoints=[{"addresses": ["10.0.0.1"]}])[1].fields == {"f:endpoints": {}}
    assert [each.manager for each in stored.merge("me", endpoints=None)] == ["me"]


def test_changing_a_field_takes_its_ownership() -> None:
    stored = StoredObject()
    stored.update("me", stored.body(data={"a": "1", "b": "1"}))
    assert stored.merge("you", data={"b": "2", "c": "2"}) == [
        ManagedEntry("me", "Update", {"f:data": {".": {}, "f:a": {}}}, at(1)),
        ManagedEntry("you", "Update", fields("b", "c"), at(2)),
    ]
    assert stored.merge("me", data={"c": "3"}) == [
        ManagedEntry("you", "Update", fields("b"), at(2)),
        ManagedEntry("me", "Update", {"f:data": {".": {}, "f:a": {}, "f:c": {}}}, at(3)),
    ]


def test_a_removed_field_has_no_manager_and_an_empty_entry_is_removed() -> None:
    stored = StoredObject()
    stored.update("me", stored.body(data={"a": "1"}))
    stored.merge("you", data={"b": "1"})
    me = ManagedEntry("me", "Update", {"f:data": {".": {}, "f:a": {}}}, at(1))
    assert stored.merge("someone", data={"b": None}) == [me]
    assert stored.merge("someone", data=None) == []


def test_a_write_without_changes_keeps_managed_fields() -> None:
    stored = StoredObject()
    stored.update("me", stored.body(data={"a": "1"}))
    assert stored.object is not None
    for new in (stored.object, stored.body(data={"a": "1"}), stored.body(data={"a": "1"}, metadata={"uid": "new"})):
        result = stored.manager.update(stored.object, new, "you", at(9))
        assert result["metadata"]["managedFields"] is stored.object["metadata"]["managedFields"] or (
            result["metadata"]["managedFields"] == stored.object["metadata"]["managedFields"]
        )


def test_unchanged_entries_are_the_same_instances() -> None:
    stored = StoredObject()
    stored.update("me", stored.body(data={"a": "1"}))
    assert stored.object is not None
    new = {**stored.object, "data": {"a": "1", "b": "2"}}
    result = stored.manager.update(stored.object, new, "you", at(9))["metadata"]["managedFields"]
    assert result[0] is stored.object["metadata"]["managedFields"][0]


@pytest.mark.parametrize("reset", [[{}], []])
def test_managed_fields_can_be_cleared(reset: list[Any]) -> None:
    stored = StoredObject()
    stored.update("me", stored.body(data={"a": "1"}))
    assert stored.object is not None
    cleared = {**stored.object, "metadata": {**stored.object["metadata"], "managedFields": reset}}
    assert "managedFields" not in stored.manager.update(stored.object, cleared, "me", at(2))["metadata"]
    kept = stored.manager.update(stored.object, cleared, "me", at(2), "status")["metadata"]["managedFields"]
    assert kept == stored.object["metadata"]["managedFields"]


def entry(manager: str = "x", **other: Any) -> dict[str, Any]:
    known = {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": at(1)}
    return {**known, "fieldsV1": {"f:data": {"f:a": {}}}, **other}


def test_managed_fields_of_a_request_replace_the_stored_ones() -> None:
    stored = StoredObject()
    stored.update("me", stored.body(data={"a": "1"}))
    odd = entry(fieldsV1={"f:data": {"f:a": None, ".": {}}, "x:unknown": {}, "f:immutable": {"x:y": {}}})
    assert stored.update("you", stored.body(data={"a": "1"}, metadata={"managedFields": [odd]})) == [
        ManagedEntry("x", "Update", {"f:data": {".": {}, "f:a": {}}, "f:immutable": {}}, at(1))
    ]


@pytest.mark.parametrize(
    "malformed",
    [
        entry(operation="Odd"),
        entry(apiVersion=""),
        entry(fieldsType=""),
        entry(fieldsType="FieldsV2"),
        entry(fieldsV1={"no-colon": {}}),
        entry(fieldsV1={"f:a": 1}),
        entry(fieldsV1={"v:{": {}}),
        entry(fieldsV1={"k:[1]": {}}),
        entry(fieldsV1={"i:x": {}}),
        entry(fieldsV1={"x": {}}),
    ],
)
def test_malformed_managed_fields_of_a_request_are_ignored(malformed: dict[str, Any]) -> None:
    stored = StoredObject()
    before = stored.update("me", stored.body(data={"a": "1"}))
    assert stored.object is not None
    new = copy.deepcopy(stored.object)
    new["metadata"]["managedFields"] = [malformed]
    result = stored.manager.update(stored.object, new, "you", at(2))["metadata"]["managedFields"]
    assert [each["manager"] for each in result] == [each.manager for each in before]


def test_invalid_stored_managed_fields_are_dropped() -> None:
    stored = StoredObject()
    live = stored.body(metadata={"managedFields": [entry(operation="Odd")]})
    assert stored.manager.update(live, stored.body(data={"b": "1"}), "you", at(2)) == stored.body(data={"b": "1"})


def test_a_change_below_an_atomic_value_owns_the_whole_value() -> None:
    manager = field_manager(f"{CORE}.Service")
    service = {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}}}
    below = entry(fieldsV1={"f:spec": {"f:selector": {".": {}, "f:a": {}}, "f:clusterIPs": {"i:0": {}}, "f:type": {}}})
    new = {**service, "metadata": {"name": "s", "managedFields": [below]}}
    [managed] = manager.update(service, new, "you", at(2))["metadata"]["managedFields"]
    assert managed["fieldsV1"] == {"f:spec": {"f:selector": {}, "f:clusterIPs": {}, "f:type": {}}}


def test_entries_of_unknown_versions_are_dropped() -> None:
    schema = Definitions.builtin().schema(f"{CORE}.ConfigMap")
    live = {"metadata": {"managedFields": [entry("a"), entry("b", apiVersion="v2"), entry("c", apiVersion="v3")]}}
    new = {**live, "data": {"b": "1"}}
    result = FieldManager(schema, "v1", versions=("v2",)).update(live, new, "you", at(2))
    assert [each["manager"] for each in result["metadata"]["managedFields"]] == ["a", "b", "you"]


def test_an_object_with_ambiguous_items_has_no_managed_fields() -> None:
    manager = field_manager(f"{CORE}.ServiceAccount")
    live = {"metadata": {"uid": "1", "managedFields": [entry()]}}
    new = {"metadata": {}, "secrets": [{"namespace": "n"}]}
    assert "managedFields" not in manager.update(live, new, "me", at(2))["metadata"]
    assert "managedFields" not in manager.update(None, new, "me", at(2))["metadata"]


def test_duplicate_items_are_managed_as_one() -> None:
    manager = field_manager(f"{CORE}.Pod")

    def pod(*images: str) -> dict[str, Any]:
        return {"metadata": {}, "spec": {"containers": [{"name": "c", "image": image} for image in images]}}

    def change(before: dict[str, Any], after: dict[str, Any]) -> Any:
        live = {**before, "metadata": {"managedFields": [entry("x", fieldsV1={"f:spec": {"f:nodeName": {}}})]}}
        entries = manager.update(live, after, "me", at(2))["metadata"]["managedFields"]
        return [each["fieldsV1"]["f:spec"].get("f:containers") for each in entries if each["manager"] == "me"]

    alone: dict[str, Any] = {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}
    assert change(pod("a", "b"), pod("a", "c")) == [{'k:{"name":"c"}': {}}]
    assert change(pod("a", "b"), pod("a", "b")) == []
    assert change(pod("a"), pod("a", "b")) == [{'k:{"name":"c"}': {}}]
    assert change(pod("a", "b"), pod("a")) == [{'k:{"name":"c"}': alone}]
    assert change(pod(), pod("a", "b")) == [{'k:{"name":"c"}': {}}]


@pytest.mark.parametrize(
    ("definition", "api_version", "subresource", "owned"),
    [
        (f"{CORE}.Pod", "v1", "", ["f:metadata", "f:spec"]),
        (f"{CORE}.Pod", "v1", "status", ["f:metadata", "f:status"]),
        (f"{CORE}.Pod", "v1", "proxy", ["f:metadata", "f:spec", "f:status"]),
        (f"{APPS}.Deployment", "apps/v1", "", ["f:metadata", "f:spec"]),
        (f"{APPS}.Deployment", "apps/v1", "status", ["f:status"]),
        ("io.k8s.api.flowcontrol.v1.FlowSchema", "flowcontrol.apiserver.k8s.io/v1", "status", ["f:status"]),
        ("io.k8s.api.networking.v1.ServiceCIDR", "networking.k8s.io/v1", "", ["f:metadata", "f:spec"]),
        ("io.k8s.api.networking.v1.NetworkPolicy", "networking.k8s.io/v1", "", ["f:metadata", "f:spec"]),
        (f"{CORE}.Namespace", "v1", "finalize", ["f:metadata", "f:spec"]),
    ],
)
def test_a_subresource_does_not_manage_fields_it_cannot_change(
    definition: str, api_version: str, subresource: str, owned: list[str]
) -> None:
    schema = Definitions.builtin().schema(definition)
    values = {"Pod": ({"nodeName": "n"}, {"phase": "P"}), "Deployment": ({"replicas": 1}, {"replicas": 1})}
    spec, status = values.get(
        definition.rpartition(".")[2],
        ({name: [] for name in list(schema.properties["spec"].properties)[:1]}, {"conditions": [{"type": "T"}]}),
    )
    new = {"metadata": {"labels": {"a": "b"}}, "spec": spec, "status": status}
    if "status" not in schema.properties:
        del new["status"]
    manager = field_manager(definition, api_version)
    [managed] = manager.update(None, new, "me", at(1), subresource)["metadata"]["managedFields"]
    assert list(managed["fieldsV1"]) == owned


def test_resize_manages_only_resources() -> None:
    manager = field_manager(f"{CORE}.Pod")
    live = {"metadata": {"managedFields": [entry()]}, "spec": {"containers": [{"name": "c"}], "nodeName": "n"}}
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    new = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], "nodeName": "m"}}
    result = manager.update(live, new, "me", at(2), "resize")["metadata"]["managedFields"]
    limits: dict[str, Any] = {"f:resources": {"f:limits": {".": {}, "f:cpu": {}}}}
    assert result[1]["fieldsV1"] == {"f:spec": {"f:containers": {'k:{"name":"c"}': limits}}}


def test_the_number_of_remembered_updaters_is_limited() -> None:
    stored = StoredObject()
    stored.apply("applier", data={"applied": "1"})
    for number in range(10, 23):
        stored.merge(f"m{number}", data={f"k{number}": "1"})
    applier, ancient, *others = stored.managed
    assert (applier.manager, ancient.manager) == ("applier", ANCIENT)
    assert [each.manager for each in others] == [f"m{number}" for number in range(14, 23)]
    assert ancient == ManagedEntry(ANCIENT, "Update", fields("k10", "k11", "k12", "k13"), others[0].time and at(5))


def test_entries_are_sorted_by_operation_and_time_in_any_time_zone() -> None:
    schema = Definitions.builtin().schema(f"{CORE}.ConfigMap")
    unsorted = [
        entry("c", time="2024-01-01T00:00:05Z"),
        entry("e", time="odd"),
        entry("b", time="2024-01-01T02:00:04+02:00"),
        entry("d", subresource="status", time="2024-01-01T00:00:05Z"),
        entry("d", time="2024-01-01T00:00:05Z"),
        entry("z", operation="Apply", time="2024-01-01T00:00:09Z"),
        {name: value for name, value in entry("y").items() if name != "time"},
    ]
    new = {"metadata": {"managedFields": unsorted}, "data": {"a": "1"}}
    result = FieldManager(schema, "v1").update({"data": {"a": "1"}}, new, "you", at(2))["metadata"]["managedFields"]
    sorted_by_time = [(each["manager"], each.get("subresource", "")) for each in result]
    assert sorted_by_time == [("z", ""), ("y", ""), ("b", ""), ("c", ""), ("d", ""), ("d", "status"), ("e", "")]


def test_a_certificate_without_a_name_is_not_authenticated() -> None:
    stored = StoredObject()
    assert [each.manager for each in stored.update("", stored.body(data={"a": "1"}))] == ["unknown"]


def test_a_timestamp_is_kept_if_it_is_the_only_change() -> None:
    live: dict[str, Any] = {"metadata": {"name": "c", "resourceVersion": "1"}, "data": {"a": "1"}}
    live["metadata"]["managedFields"] = [entry()]
    later: dict[str, Any] = {
        **live,
        "metadata": {"name": "c", "resourceVersion": "2", "managedFields": [entry(time=at(9))]},
    }
    assert keep_timestamps(live, later)["metadata"]["managedFields"] == [entry()]
    for different in (
        {**later, "data": {"a": "2"}},
        {**later, "metadata": {**later["metadata"], "labels": {"a": "b"}}},
        {**later, "metadata": {"name": "c", "managedFields": [entry(time=at(9), subresource="status")]}},
        {**later, "metadata": {"name": "c", "managedFields": [entry(time=at(9)), entry("y")]}},
        {**later, "metadata": {"name": "c"}},
    ):
        assert keep_timestamps(live, different) is different
