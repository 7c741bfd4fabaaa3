from __future__ import annotations

import re
from random import Random

import pytest

from ctrlmgr.engine.generated_names import generate_name, new_uid
from tests.engine.stage import Stage

MAPS = "/api/v1/namespaces/shop/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    assert stage.namespace("shop").code == 201
    return stage


def test_the_server_sets_author_time_and_revision(stage: Stage) -> None:
    created = stage.send("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    metadata = created.body["metadata"]
    assert created.code == 201
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", metadata["uid"])
    assert (metadata["namespace"], metadata["resourceVersion"]) == ("shop", "2")
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    (entry,) = metadata["managedFields"]
    assert (entry["manager"], entry["operation"], entry["time"]) == ("kubectl", "Update", "2026-01-01T00:00:00Z")
    assert stage.send("GET", f"{MAPS}/a").body == created.body
    (event,) = stage.log.events_after(1)
    assert (event.actor, event.user_agent) == ("alice", "kubectl/v1.36.2 (linux/amd64)")


def test_clients_cannot_set_system_fields(stage: Stage) -> None:
    metadata = {
        "name": "a",
        "uid": "mine",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/here",
        "generation": 9,
    }
    created = stage.send("POST", MAPS, {"metadata": metadata}).body["metadata"]
    assert created["uid"] != "mine"
    assert created["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert not created.keys() & {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}
    assert created["generation"] == 9  # for kinds that do not count generations, the client sets the generation


@pytest.mark.parametrize(
    ("path", "metadata", "code", "message"),
    [
        (MAPS, {"name": "there"}, 409, 'configmaps "there" already exists'),
        (
            MAPS,
            {"name": "a", "namespace": "other"},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            MAPS,
            {"name": "a", "resourceVersion": "5"},
            500,
            "resourceVersion should not be set on objects to be created",
        ),
        (
            MAPS,
            {},
            422,
            'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
        ),
        (LEASES, {"name": "A"}, 422, 'Lease.coordination.k8s.io "A" is invalid: metadata.name: Invalid value: "A"'),
        (MAPS.replace("shop", "none"), {"name": "a"}, 404, 'namespaces "none" not found'),
    ],
)
def test_invalid_creations_are_refused(
    stage: Stage, path: str, metadata: dict[str, str], code: int, message: str
) -> None:
    stage.send("POST", MAPS, {"metadata": {"name": "there"}})
    head = stage.log.head()
    refused = stage.send("POST", path, {"metadata": metadata})
    assert refused.code == code
    assert refused.message.startswith(message)
    assert stage.log.head() == head


def test_an_empty_or_zero_resource_version_is_ignored(stage: Stage) -> None:
    for name, version in (("a", "0"), ("b", "")):
        metadata = {"name": name, "resourceVersion": version}
        assert stage.send("POST", MAPS, {"metadata": metadata}).code == 201


def test_the_name_of_a_terminating_object_is_in_use(stage: Stage) -> None:
    stage.send("POST", MAPS, {"metadata": {"name": "a", "finalizers": ["a.b/c"]}})
    stage.send("DELETE", f"{MAPS}/a")
    refused = stage.send("POST", MAPS, {"metadata": {"name": "a"}})
    assert refused.message == 'object is being deleted: configmaps "a" already exists'
    assert refused.body["details"] == {"name": "a", "kind": "configmaps"}


def test_creations_in_a_terminating_namespace_are_refused(stage: Stage) -> None:
    stage.send("DELETE", "/api/v1/namespaces/shop")
    refused = stage.send("POST", MAPS, {"metadata": {"name": "late"}})
    assert refused.code == 403
    assert refused.message == (
        'configmaps "late" is forbidden: unable to create new content in namespace shop because it is being terminated'
    )
    assert refused.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace shop is being terminated",
            "field": "metadata.namespace",
        }
    ]
    unnamed = stage.send("POST", MAPS, {"metadata": {"generateName": "late-"}})
    assert unnamed.message.startswith('configmaps "late-" is forbidden')


def test_generated_names_are_random_and_unused(stage: Stage) -> None:
    names = {
        stage.send("POST", MAPS, {"metadata": {"generateName": "web-"}}).body["metadata"]["name"] for _ in range(50)
    }
    assert len(names) == 50
    assert all(re.fullmatch(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    given = stage.send("POST", MAPS, {"metadata": {"generateName": "web-", "name": "given"}})
    assert given.body["metadata"]["name"] == "given"


@pytest.mark.parametrize(("taken", "code"), [(7, 201), (8, 409)])
def test_a_generated_name_in_use_is_replaced(stage: Stage, taken: int, code: int) -> None:
    draws = Random(5)
    new_uid(draws)  # the engine generates a uid before this
    for _ in range(taken):
        stage.send("POST", MAPS, {"metadata": {"name": generate_name("x-", draws)}})
    stage.engine._random = Random(5)
    response = stage.send("POST", MAPS, {"metadata": {"generateName": "x-"}})
    assert response.code == code
    if code == 409:
        assert response.body["details"]["retryAfterSeconds"] == 1
        assert response.message.endswith("the server was not able to generate a unique name for the object")


def test_a_long_prefix_is_truncated() -> None:
    assert len(generate_name("g" * 70, Random(1))) == 63
    assert generate_name("é" * 40, Random(1)).startswith("é" * 29)


def test_dry_runs_return_the_result_and_store_nothing(stage: Stage) -> None:
    head = stage.log.head()
    shown = stage.send("POST", MAPS, {"metadata": {"name": "a"}}, query={"dryRun": "All"})
    assert shown.code == 201
    assert "resourceVersion" not in shown.body["metadata"]
    assert shown.body["metadata"]["uid"]
    assert stage.log.head() == head


def test_repeated_owners_are_dropped_with_a_warning(stage: Stage) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}
    created = stage.send(
        "POST", MAPS, {"metadata": {"name": "a", "ownerReferences": [owner, owner, {**owner, "uid": "2"}]}}
    )
    assert [each["uid"] for each in created.body["metadata"]["ownerReferences"]] == ["1", "2"]
    (warning,) = created.warnings
    assert warning.endswith("please fix your requests; duplicate UID(s) observed: 1")


@pytest.mark.parametrize(
    ("validation", "code", "warnings"),
    [
        ("Ignore", 201, []),
        ("Warn", 201, ['unknown field "other"']),
        ("", 201, ['unknown field "other"']),
        ("Strict", 400, []),
    ],
)
def test_unknown_fields_are_handled_by_field_validation(
    stage: Stage, validation: str, code: int, warnings: list[str]
) -> None:
    body = {"metadata": {"name": "a"}, "other": 1}
    response = stage.send("POST", MAPS, body, query={"fieldValidation": validation} if validation else {})
    assert (response.code, list(response.warnings)) == (code, warnings)
    if code == 400:
        assert response.message == (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "other"'
        )


def test_refused_requests_carry_warnings(stage: Stage) -> None:
    refused = stage.send("POST", MAPS, {"metadata": {"name": "BAD"}, "other": 1})
    assert (refused.code, list(refused.warnings)) == (422, ['unknown field "other"'])


def test_kinds_without_storage_cannot_be_created(stage: Stage) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    head = stage.log.head()
    assert stage.send("POST", path, {"spec": {}}).code == 405
    assert stage.log.head() == head
