"""Tests that server-side apply results in the same objects and managers as in Kubernetes 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.errors import ApiError, ApplyConflict, BadRequest, StatusCause, UnknownError
from tests.engine.managedfields.stored import APPS, CORE, ManagedEntry, StoredObject, field_manager, fields


def at(second: int) -> str:
    return f"2024-01-01T00:00:{second:02}Z"


def conflict(stored: StoredObject, manager: str, **body: Any) -> ApplyConflict:
    before = stored.object
    with pytest.raises(ApplyConflict) as caught:
        stored.apply(manager, **body)
    assert stored.object is before
    return caught.value


def causes(error: ApplyConflict) -> list[StatusCause]:
    assert error.details is not None
    return list(error.details.causes)


def test_applied_fields_are_managed() -> None:
    stored = StoredObject()
    assert stored.apply("alice", data={"a": "1", "b": "1"}) == [ManagedEntry("alice", "Apply", fields("a", "b"), at(1))]
    assert stored["data"] == {"a": "1", "b": "1"}


def test_applying_twice_changes_nothing() -> None:
    stored = StoredObject()
    stored.apply("alice", data={"a": "1"})
    stored.apply("alice", data={"a": "1"})
    assert stored.writes == 1


def test_a_field_no_longer_applied_is_removed() -> None:
    stored = StoredObject()
    stored.apply("alice", data={"a": "1", "b": "1"})
    assert stored.apply("alice", data={"a": "2"}) == [ManagedEntry("alice", "Apply", fields("a"), at(2))]
    assert stored["data"] == {"a": "2"}


def test_a_field_applied_by_another_manager_conflicts_unless_forced() -> None:
    stored = StoredObject()
    stored.apply("alice", data={"a": "2"})
    error = conflict(stored, "bob", data={"a": "3"})
    assert str(error) == 'Apply failed with 1 conflict: conflict with "alice": .data.a'
    assert causes(error) == [StatusCause("FieldManagerConflict", 'conflict with "alice"', ".data.a")]
    assert (error.code, error.reason) == (409, "Conflict")
    assert stored.apply("bob", data={"a": "3"}, force=True) == [ManagedEntry("bob", "Apply", fields("a"), at(3))]


def test_applying_equal_fields_shares_them_without_a_new_time() -> None:
    stored = StoredObject()
    stored.apply("bob", data={"a": "3"})
    alice = ManagedEntry("alice", "Apply", fields("a"))
    assert stored.apply("alice", data={"a": "3"}) == [alice, ManagedEntry("bob", "Apply", fields("a"), at(1))]
    assert stored.writes == 2
    stored.apply("bob", data={})
    assert stored["data"] == {"a": "3"}


def test_a_field_of_another_manager_is_a_conflict_with_its_version() -> None:
    stored = StoredObject()
    stored.apply("alice", data={"a": "1"})
    managed = stored.merge("carol", data={"z": "1"})
    assert managed[1] == ManagedEntry("carol", "Update", fields("z"), at(2))
    error = conflict(stored, "alice", data={"z": "2"})
    assert str(error) == 'Apply failed with 1 conflict: conflict with "carol" using v1: .data.z'


def test_several_conflicts_are_listed_by_manager() -> None:
    stored = StoredObject()
    stored.update("kubectl-edit", stored.body(data={"d": "1"}))
    stored.apply("zoe", data={"c": "1", "b": "1"})
    stored.apply("al", data={"a": "1"})
    stored.merge("part", subresource="status", data={"e": "1"})
    error = conflict(stored, "bob", data=dict.fromkeys("abcde", "2"))
    assert str(error) == (
        "Apply failed with 5 conflicts: "
        'conflicts with "al":\n- .data.a\n'
        'conflicts with "kubectl-edit" using v1:\n- .data.d\n'
        'conflicts with "part" with subresource "status" using v1:\n- .data.e\n'
        'conflicts with "zoe":\n- .data.b\n- .data.c'
    )
    assert [cause.field for cause in causes(error)] == [".data.a", ".data.d", ".data.e", ".data.b", ".data.c"]


def test_items_of_lists_are_managed_by_key() -> None:
    stored = StoredObject(f"{CORE}.Service")
    port = {"name": "a", "port": 1, "protocol": "TCP"}
    stored.apply("alice", spec={"ports": [port], "selector": {"a": "b"}})
    item: dict[str, Any] = {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}
    one: dict[str, Any] = {"f:spec": {"f:ports": {'k:{"port":1,"protocol":"TCP"}': item}, "f:selector": {}}}
    two: dict[str, Any] = {"f:spec": {"f:ports": {'k:{"port":2,"protocol":"TCP"}': item}, "f:selector": {}}}
    assert stored.managed == [ManagedEntry("alice", "Apply", one, at(1))]
    other = {"name": "b", "port": 2, "protocol": "TCP"}
    managed = stored.apply("bob", spec={"ports": [other], "selector": {"a": "b"}})
    assert managed == [ManagedEntry("alice", "Apply", one, at(1)), ManagedEntry("bob", "Apply", two, at(2))]
    assert [each["name"] for each in stored["spec"]["ports"]] == ["a", "b"]
    error = conflict(stored, "alice", spec={"ports": [{**other, "name": "zz"}]})
    assert [cause.field for cause in causes(error)] == ['.spec.ports[port=2,protocol="TCP"].name']
    stored.apply("alice", spec={"selector": {"a": "b"}})
    assert [each["name"] for each in stored["spec"]["ports"]] == ["b"]


def test_an_omitted_key_has_its_default() -> None:
    stored = StoredObject(f"{CORE}.Service")
    stored.apply("alice", spec={"ports": [{"port": 1}]})
    item: dict[str, Any] = {".": {}, "f:port": {}}
    assert stored.managed[0].fields == {"f:spec": {"f:ports": {'k:{"port":1,"protocol":"TCP"}': item}}}


@pytest.mark.parametrize(
    ("before", "applied", "after"),
    [
        ("abc", "b", "abc"),
        ("abc", "d", "abcd"),
        ("abc", "ca", "bca"),
        ("abc", "cba", "cba"),
        ("abc", "cdb", "acdb"),
        ("abc", "adb", "adbc"),
        ("abcd", "dxa", "bcdxa"),
        ("", "ba", "ba"),
    ],
)
def test_merged_lists_keep_both_orders_or_the_appliers(before: str, applied: str, after: str) -> None:
    stored = StoredObject()
    stored.update("someone", stored.body(metadata={"finalizers": [f"x/{each}" for each in before]}))
    stored.apply("alice", metadata={"finalizers": [f"x/{each}" for each in applied]})
    assert "".join(each[2:] for each in stored["metadata"]["finalizers"]) == after


def test_items_of_sets_are_managed_by_value() -> None:
    stored = StoredObject()
    stored.apply("alice", metadata={"finalizers": ["x/a", "x/b"]})
    stored.merge("bob", metadata={"finalizers": ["x/a", "x/b", "x/c"]})
    both: dict[str, Any] = {"f:metadata": {"f:finalizers": {'v:"x/a"': {}, 'v:"x/b"': {}}}}
    added: dict[str, Any] = {"f:metadata": {"f:finalizers": {'v:"x/c"': {}}}}
    assert stored.managed == [ManagedEntry("alice", "Apply", both, at(1)), ManagedEntry("bob", "Update", added, at(2))]
    stored.apply("alice", metadata={"finalizers": ["x/b"]})
    assert stored["metadata"]["finalizers"] == ["x/b", "x/c"]


def test_a_container_no_longer_applied_is_removed_unless_others_manage_part_of_it() -> None:
    stored = StoredObject(f"{APPS}.Deployment", "apps/v1")
    first, second = {"name": "a", "image": "x"}, {"name": "b", "image": "y"}

    def template(*containers: dict[str, Any]) -> dict[str, Any]:
        return {"replicas": 1, "template": {"spec": {"containers": list(containers)}}}

    stored.apply("alice", spec=template(first, second))
    stored.apply("bob", spec={"template": {"spec": {"containers": [{"name": "b", "tty": True}]}}})
    stored.apply("alice", spec=template(first))
    left = stored["spec"]["template"]["spec"]["containers"]
    assert [(each["name"], each.get("image"), each.get("tty")) for each in left] == [
        ("a", "x", None),
        ("b", None, True),
    ]
    stored.apply("bob", spec={})
    assert [each["name"] for each in stored["spec"]["template"]["spec"]["containers"]] == ["a"]


def test_unmanaged_fields_are_kept_when_their_parent_is_removed() -> None:
    stored = StoredObject(f"{CORE}.Service")
    stored.apply("alice", spec={"ports": [{"port": 1}], "type": "ClusterIP"})
    assert stored.object is not None
    stored.object["spec"]["clusterIP"] = "10.0.0.1"  # as allocated by the server
    stored.apply("alice", spec={"type": "ClusterIP"})
    assert stored["spec"] == {"clusterIP": "10.0.0.1", "type": "ClusterIP"}


def test_a_field_is_removed_completely_with_its_last_applied_part() -> None:
    """Server-side apply also removes fields without a manager; the strategy of the kind keeps fields that must not be
    removed.
    """
    stored = StoredObject(f"{CORE}.Service")
    stored.apply("alice", spec={"type": "ClusterIP"})
    assert stored.object is not None
    stored.object["spec"]["clusterIP"] = "10.0.0.1"
    stored.apply("alice", metadata={"labels": {"a": "b"}})
    assert stored["spec"] == {}


def test_applying_an_empty_map_owns_it() -> None:
    stored = StoredObject()
    assert stored.apply("alice", data={})[0].fields == {"f:data": {}}


def test_the_first_apply_keeps_the_earlier_manager() -> None:
    stored = StoredObject()
    stored.update("someone", stored.body(data={"a": "1"}, metadata={"labels": {"l": "1"}}))
    stored.merge("someone", metadata={"managedFields": [{}]})
    assert stored.managed == []
    assert stored.merge("someone", data={"b": "1"}) == []
    managed = stored.apply("alice", data={"c": "1"})
    before: dict[str, Any] = {
        "f:data": {".": {}, "f:a": {}, "f:b": {}},
        "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
    }
    assert managed == [
        ManagedEntry("alice", "Apply", fields("c"), at(4)),
        ManagedEntry("before-first-apply", "Update", before, at(4)),
    ]


def test_each_subresource_has_separate_managers() -> None:
    stored = StoredObject(f"{CORE}.Pod")
    stored.apply("a", spec={"nodeName": "n"}, status={"phase": "Running"})
    assert stored.managed == [ManagedEntry("a", "Apply", {"f:spec": {"f:nodeName": {}}}, at(1))]
    stored.apply("a", subresource="status", spec={"nodeName": "m"}, status={"phase": "Failed"})
    status: dict[str, Any] = {"f:status": {"f:phase": {}}}
    assert stored.managed[1] == ManagedEntry("a", "Apply", status, at(2), "status")


def test_a_null_is_managed_and_removed_by_the_codec() -> None:
    stored = StoredObject(f"{APPS}.Deployment", "apps/v1")
    stored.apply("a", spec={"template": {"metadata": {"creationTimestamp": None}}})
    created: dict[str, Any] = {"f:creationTimestamp": {}}
    assert stored.managed[0].fields == {"f:spec": {"f:template": {"f:metadata": created}}}


def test_unapplying_everything_leaves_no_entry() -> None:
    stored = StoredObject()
    stored.apply("alice", data={"a": "1"})
    assert stored.apply("alice") == []
    assert stored["data"] is None


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ({"data": {}}, BadRequest, "invalid object type: /, Kind="),
        ({"apiVersion": "v1", "kind": "Secret"}, BadRequest, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "apps/v2", "kind": "ConfigMap"}, BadRequest, "invalid object type: apps/v2, Kind=ConfigMap"),
        ({"metadata": {"managedFields": []}}, BadRequest, "metadata.managedFields must be nil"),
        ({"metadata": {"managedFields": [{}]}}, BadRequest, "metadata.managedFields must be nil"),
        ({"unknown": 1}, UnknownError, "(ns/c; /v1, Kind=ConfigMap): .unknown: field not declared in schema"),
        ({"data": {"a": 1}}, UnknownError, "(ns/c; /v1, Kind=ConfigMap): .data.a: expected string, got &{1}"),
        ({"immutable": "x"}, UnknownError, "(ns/c; /v1, Kind=ConfigMap): .immutable: expected boolean, got &{x}"),
        ({"data": ["a"]}, UnknownError, "(ns/c; /v1, Kind=ConfigMap): .data: expected map, got &{[a]}"),
        ({"metadata": "x"}, UnknownError, "(/; /v1, Kind=ConfigMap): .metadata: expected map, got &{x}"),
        (
            {"immutable": 1, "data": {"a": True}},
            UnknownError,
            "(ns/c; /v1, Kind=ConfigMap): errors:\n"
            "  .immutable: expected boolean, got &{1}\n"
            "  .data.a: expected string, got &{true}",
        ),
    ],
)
def test_inapplicable_bodies_are_refused(body: dict[str, Any], error: type[ApiError], message: str) -> None:
    stored = StoredObject()
    if "kind" not in body and body != {"data": {}}:
        body = {"apiVersion": "v1", "kind": "ConfigMap", **body}
    if isinstance(body.get("metadata", {}), dict):
        body["metadata"] = {"name": "c", "namespace": "ns", **body.get("metadata", {})}
    with pytest.raises(error) as refused:
        stored.manager.apply(None, body, "alice", at(1), force=True)
    prefix = "failed to create typed patch object " if error is UnknownError else ""
    assert str(refused.value) == prefix + message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"ports": [{"port": 1}, {"port": 1}]}, '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]'),
        ({"ports": [None]}, ".spec.ports: element 0: associative list with keys may not have a null element"),
        ({"ports": [1]}, ".spec.ports: element 0: associative list with keys may not have non-map elements"),
        ({"ports": {}}, ".spec.ports: expected list, got &{map[]}"),
        ({"clusterIPs": {}}, ".spec.clusterIPs: expected list, got &{map[]}"),
        ({"clusterIPs": ["a", 1]}, ".spec.clusterIPs[1]: expected string, got &{1}"),
        ({"selector": {"a": 1}}, ".spec.selector.a: expected string, got &{1}"),
        (
            {"ports": [{"port": "x"}]},
            '.spec.ports[port="x",protocol="TCP"].port: expected numeric (int or float), got string',
        ),
        (
            {"ports": [{"port": 1, "targetPort": {}}]},
            '.spec.ports[port=1,protocol="TCP"].targetPort: expected any scalar, got &{map[]}',
        ),
    ],
)
def test_values_that_do_not_fit_the_schema_are_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownError) as refused:
        StoredObject(f"{CORE}.Service").apply("alice", spec=spec)
    assert str(refused.value).endswith(f"Kind=Service): {message}")


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({}, "associative list without keys has an element that's a map type"),
        ([], "not supported: associative list with lists as elements"),
        (None, "associative list without keys has an element that's an explicit null"),
    ],
)
def test_sets_hold_scalars(item: Any, message: str) -> None:
    with pytest.raises(UnknownError) as refused:
        StoredObject().apply("alice", metadata={"finalizers": ["x/a", item]})
    assert str(refused.value).endswith(f": .metadata.finalizers: element 1: {message}")


def test_an_item_must_have_one_of_its_keys() -> None:
    with pytest.raises(UnknownError) as refused:
        StoredObject(f"{CORE}.ServiceAccount").apply("alice", secrets=[{"namespace": "x"}])
    assert str(refused.value).endswith(
        ': .secrets: element 0: associative list with keys has an element that omits all key fields ["name"] '
        "(and doesn't have default values for any key fields)"
    )


@pytest.mark.parametrize(
    ("container", "key"),
    [
        ({"image": "x"}, 'k:{"name":""}'),
        ({"name": "c", "ports": [{"hostPort": 1}]}, 'k:{"containerPort":0,"protocol":"TCP"}'),
        ({"name": "c", "ports": [{"protocol": "UDP"}]}, 'k:{"containerPort":0,"protocol":"UDP"}'),
        ({"name": "c", "env": [{"value": "x"}]}, 'k:{"name":""}'),
        ({"name": "c", "volumeMounts": [{"name": "v"}]}, 'k:{"mountPath":""}'),
    ],
)
def test_a_missing_key_that_go_always_writes_has_its_zero_value(container: dict[str, Any], key: str) -> None:
    (managed,) = StoredObject(f"{CORE}.Pod").apply("alice", spec={"containers": [container]})
    assert key in str(managed.fields["f:spec"]["f:containers"])


def test_items_that_lack_the_same_key_are_duplicates() -> None:
    with pytest.raises(UnknownError) as refused:
        StoredObject(f"{CORE}.Pod").apply("alice", spec={"containers": [{"image": "x"}, {"image": "y"}]})
    assert str(refused.value).endswith(': .spec.containers: duplicate entries for key [name=""]')


def test_unreadable_managed_fields_are_an_error() -> None:
    stored = StoredObject()
    live = stored.body(metadata={"managedFields": [{"manager": "a", "operation": "Odd"}]})
    with pytest.raises(UnknownError, match=r"^failed to decode managed fields: operation must be `Apply` or `Update`$"):
        stored.manager.apply(live, stored.body(), "alice", at(1), force=False)


def test_a_stored_object_that_cannot_be_applied_to_is_an_error() -> None:
    manager = field_manager(f"{CORE}.ServiceAccount")
    live = {"metadata": {"name": "a", "namespace": "b"}, "secrets": [{}]}
    applied = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    with pytest.raises(UnknownError) as caught:
        manager.apply(live, applied, "alice", at(1), force=False)
    assert str(caught.value).startswith(
        "failed to create typed live object (b/a; /v1, Kind=ServiceAccount): .secrets: "
    )
