from typing import Any

import pytest

from ctrlmgr.api.field import Path
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import (
    update_errors,
    validate_field_manager,
    validate_metadata,
)

META: dict[str, Any] = {"name": "a", "namespace": "ns"}
STORED = {**META, "uid": "u", "resourceVersion": "5", "creationTimestamp": "2024-01-01T00:00:00Z"}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
UNKNOWN_FINALIZER = "name is neither a standard finalizer name nor is it fully qualified"


def creation(metadata: dict[str, Any], **options: Any) -> list[str]:
    given: Any = {"namespaced": True, "name_check": name_formats.subdomain_name} | options
    return [error.message for error in validate_metadata(metadata, **given)]


def all_passes(new: dict[str, Any], old: dict[str, Any], **options: Any) -> list[str]:
    given: Any = {"namespaced": True, "name_check": name_formats.subdomain_name, "revalidated": 1} | options
    return [error.message for error in update_errors(new, old, **given)]


def update(new: dict[str, Any], old: dict[str, Any], **options: Any) -> list[str]:
    """Return the errors with which an update is refused, each error once."""
    return list(dict.fromkeys(all_passes(new, old, **options)))


@pytest.mark.parametrize(
    "metadata",
    [
        META,
        {**META, "name": "gen-x7f2k", "generateName": "gen-"},
        {**META, "labels": {"example.com/a": ""}, "annotations": {"Example.COM/A": "x" * 1000}},
        {**META, "finalizers": ["kubernetes", "orphan", "example.com/a", "example.com/a"]},
        {**META, "ownerReferences": [OWNER, {**OWNER, "apiVersion": "apps/v1", "controller": True}]},
        {**META, "managedFields": [{"operation": "Update", "manager": "m", "fieldsType": "FieldsV1"}]},
        {**META, "labels": None, "annotations": None, "finalizers": None, "ownerReferences": None},
    ],
)
def test_valid_metadata(metadata: dict[str, Any]) -> None:
    assert creation(metadata) == []


def problems_of(field: str, value: str, problems: list[str]) -> list[str]:
    return [f'metadata.{field}: Invalid value: "{value}": {each}' for each in problems]


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
        ({"name": "-a"}, problems_of("name", "-a", name_formats.dns1123_subdomain("-a"))),
        (
            {"name": "Bad_x7f2k", "generateName": "Bad_"},
            problems_of("generateName", "Bad_", name_formats.dns1123_subdomain("Bad_"))
            + problems_of("name", "Bad_x7f2k", name_formats.dns1123_subdomain("B")),
        ),
        ({"namespace": ""}, ["metadata.namespace: Required value"]),
        ({"namespace": "a.b"}, ['metadata.namespace: Invalid value: "a.b": must not contain dots']),
        ({"generation": -1}, ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]),
        ({"labels": {"bad key!": "x"}}, problems_of("labels", "bad key!", name_formats.qualified_name("bad key!"))),
        (
            {"annotations": {"bad key!": "x"}},
            problems_of("annotations", "bad key!", name_formats.qualified_name("b k")),
        ),
        (
            {"annotations": {"a": "x" * 262144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        ({"finalizers": ["nodomain"]}, [f'metadata.finalizers[0]: Invalid value: "nodomain": {UNKNOWN_FINALIZER}']),
        ({"finalizers": ["a.b/-"]}, problems_of("finalizers", "a.b/-", name_formats.qualified_name("a.b/-"))),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                "finalizer orphan and foregroundDeletion cannot be both set"
            ],
        ),
    ],
)
def test_invalid_metadata(change: dict[str, Any], messages: list[str]) -> None:
    assert creation({**META, **change}) == messages


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    assert creation({"name": "a"}, namespaced=False) == []
    assert creation(META, namespaced=False) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_the_kind_determines_valid_names() -> None:
    assert creation({**META, "name": "System:A"}, name_check=name_formats.path_segment_name) == []
    assert creation({**META, "name": "a.b"}, name_check=name_formats.label_name) == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]


def test_some_kinds_allow_any_finalizer() -> None:
    assert creation({**META, "finalizers": ["nodomain"]}, any_finalizer=True) == []
    assert update({**STORED, "finalizers": ["nodomain"]}, STORED, any_finalizer=True) == []
    assert update({**STORED, "finalizers": ["nodomain"]}, STORED) != []


@pytest.mark.parametrize(
    ("owner", "messages"),
    [
        ({"apiVersion": ""}, ['.apiVersion: Invalid value: "": version must not be empty']),
        ({"apiVersion": "apps/"}, ['.apiVersion: Invalid value: "apps/": version must not be empty']),
        ({"apiVersion": "a/b/c"}, ['.apiVersion: Invalid value: "a/b/c": version must not be empty']),
        ({"kind": ""}, ['.kind: Invalid value: "": must not be empty']),
        ({"name": ""}, ['.name: Invalid value: "": must not be empty']),
        ({"uid": ""}, ['.uid: Invalid value: "": must not be empty']),
        (
            {"kind": "Event"},
            [
                ': Invalid value: {"apiVersion":"v1","kind":"Event","name":"p","uid":"u"}: '
                "/v1, Kind=Event is disallowed from being an owner"
            ],
        ),
    ],
)
def test_an_owner_reference_is_complete(owner: dict[str, Any], messages: list[str]) -> None:
    found = creation({**META, "ownerReferences": [{**OWNER, **owner}]})
    assert found == [f"metadata.ownerReferences{each}" for each in messages]


def test_an_object_has_one_controller() -> None:
    owners = [{**OWNER, "controller": True}, {**OWNER, "name": "q", "controller": True}]
    (message,) = creation({**META, "ownerReferences": owners})
    assert message == (
        'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u",'
        '"controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"u","controller":true}]: Only one '
        'reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q'
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"operation": "Delete"}, 'operation: Invalid value: "Delete": must be `Apply` or `Update`'),
        ({"operation": "Apply", "fieldsType": "V2"}, 'fieldsType: Invalid value: "V2": must be `FieldsV1`'),
        ({"operation": "Apply", "manager": "m" * 129}, "manager: Too long: may not be more than 128 bytes"),
        ({"operation": "Apply", "subresource": "s" * 257}, "subresource: Too long: may not be more than 256 bytes"),
    ],
)
def test_managed_fields_are_checked(entry: dict[str, Any], message: str) -> None:
    assert creation({**META, "managedFields": [entry]}) == [f"metadata.managedFields[0].{message}"]


def test_a_field_manager_is_printable() -> None:
    assert validate_field_manager("kubectl é", Path("fieldManager")) == []
    (error,) = validate_field_manager("é\n", Path("fieldManager"))
    assert error.message == r'fieldManager: Invalid value: "é\n": invalid character U+000A (at position 2)'


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({}, []),
        ({"labels": {"a": "b"}, "finalizers": ["a.b/c"]}, []),
        ({"resourceVersion": ""}, ['resourceVersion: Invalid value: "": must be specified for an update']),
        ({"name": "b"}, ['name: Invalid value: "b": field is immutable']),
        ({"namespace": "b"}, ['namespace: Invalid value: "b": field is immutable']),
        ({"uid": "v"}, ['uid: Invalid value: "v": field is immutable']),
        ({"creationTimestamp": None}, ["creationTimestamp: Invalid value: null: field is immutable"]),
        (
            {"deletionTimestamp": "2001-01-01T00:00:00Z"},
            ['deletionTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable'],
        ),
        ({"deletionGracePeriodSeconds": 0}, ["deletionGracePeriodSeconds: Invalid value: 0: field is immutable"]),
    ],
)
def test_fields_an_update_can_change(change: dict[str, Any], messages: list[str]) -> None:
    assert update({**STORED, **change}, STORED) == [f"metadata.{each}" for each in messages]


def test_a_generation_never_decreases() -> None:
    old = {**STORED, "generation": 3}
    assert update({**STORED, "generation": 4}, old) == []
    assert update({**STORED, "generation": 2}, old) == [
        "metadata.generation: Invalid value: 2: must not be decremented"
    ]


def test_a_terminating_object_gets_no_new_finalizers() -> None:
    going = {**STORED, "deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["example.com/hold"]}
    assert update({**going, "finalizers": []}, going) == []
    (message,) = update({**going, "finalizers": ["example.com/z", "example.com/hold", "example.com/c"]}, going)
    assert message == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"example.com/c", "example.com/z"}'
    )


def test_an_error_of_an_update_is_listed_once_per_pass() -> None:
    """Kubernetes reports a ConfigMap's invalid label four times, and its changed uid twice: patch-a-011 and -014 of the
    corpus.
    """
    assert len(all_passes({**STORED, "labels": {"a~b": ""}}, STORED)) == 4
    assert len(all_passes({**STORED, "labels": {"a~b": ""}}, STORED, revalidated=0)) == 3
    assert len(all_passes({**STORED, "uid": "v"}, STORED)) == 2
    assert all_passes(STORED, STORED) == []


def test_some_kinds_validate_metadata_differently() -> None:
    """Kubernetes does not compare the metadata of EndpointSlices, validates PersistentVolumes twice, and does not
    validate PodDisruptionBudgets at all.
    """
    wrong, finalizers = {**STORED, "labels": {"a~b": ""}}, {**STORED, "finalizers": ["nodomain"]}
    counts = {
        (revalidated, compared): [
            len(all_passes(each, STORED, revalidated=revalidated, compared=compared))
            for each in (wrong, {**STORED, "uid": "v"}, finalizers)
        ]
        for revalidated, compared in ((1, False), (2, False), (0, False), (1, True))
    }
    assert counts == {(1, False): [3, 1, 1], (2, False): [4, 1, 2], (0, False): [2, 1, 0], (1, True): [4, 2, 2]}


def test_an_unknown_finalizer_is_an_error_of_the_kind_only() -> None:
    message = f'metadata.finalizers[0]: Invalid value: "nodomain": {UNKNOWN_FINALIZER}'
    assert all_passes({**STORED, "finalizers": ["nodomain"]}, STORED) == [message, message]
