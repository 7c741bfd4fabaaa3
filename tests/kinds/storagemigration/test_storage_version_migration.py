from typing import Any

import pytest

from ctrlmgr.kinds.storagemigration.printers import STORAGE_VERSION_MIGRATION
from ctrlmgr.kinds.storagemigration.storage_version_migration import StorageVersionMigrationStrategy
from tests.kinds.write import create, stored, update

STRATEGY = StorageVersionMigrationStrategy()
NOW = "2026-01-02T03:04:05Z"


def fields(group: str, resource: str) -> dict[str, Any]:
    return {"metadata": {"name": "m"}, "spec": {"resource": {"group": group, "resource": resource}}}


def condition(type_: str, status: str = "True") -> dict[str, Any]:
    return {"type": type_, "status": status, "lastTransitionTime": NOW, "reason": "Why", "message": ""}


@pytest.mark.parametrize(
    ("group", "resource", "errors"),
    [
        ("", "secrets", []),
        ("apps", "deployments", []),
        ("", "", ["spec.resource.resource: Required value: resource is required to be set"]),
        ("a_b", "secrets", ['spec.resource.group: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist']),
        ("", "Secrets", ['spec.resource.resource: Invalid value: "Secrets": a DNS-1035 label must consist of']),
    ],
)
def test_the_resource_is_validated(group: str, resource: str, errors: list[str]) -> None:
    found = create(STRATEGY, fields(group, resource), namespaced=False).messages
    assert len(found) == len(errors)
    assert all(message.startswith(error) for message, error in zip(found, errors, strict=True))


def test_the_spec_is_immutable() -> None:
    changed = update(STRATEGY, fields("", "secrets"), {"spec": fields("", "pods")["spec"]}, namespaced=False)
    assert changed.messages == ['spec: Invalid value: {"Resource":{"group":"","resource":"pods"}}: field is immutable']


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [
        ({}, {"resourceVersion": "12", "conditions": [condition("Running")]}, []),
        (
            {},
            {"resourceVersion": "012"},
            ['status.resourceVersion: Invalid value: "012": resource version is not well formed: 012'],
        ),
        (
            {"resourceVersion": "12"},
            {"resourceVersion": "13"},
            ['status.resourceVersion: Invalid value: "13": field is immutable'],
        ),
        (
            {"conditions": [condition("Succeeded")]},
            {},
            ["status.conditions: Invalid value: []: Success condition cannot be set to false once it is true"],
        ),
        (
            {"conditions": [condition("Failed")]},
            {},
            ["status.conditions: Invalid value: []: Failed condition cannot be set to false once it is true"],
        ),
    ],
)
def test_the_status_is_validated(old: dict[str, Any], new: dict[str, Any], errors: list[str]) -> None:
    before = {**fields("", "secrets"), "status": old}
    assert update(STRATEGY, before, {"status": new}, namespaced=False, subresource="status").messages == errors


def test_a_migration_cannot_both_succeed_and_fail() -> None:
    both = {"conditions": [condition("Succeeded"), condition("Failed")]}
    found = update(STRATEGY, fields("", "secrets"), {"status": both}, namespaced=False, subresource="status").messages
    assert [each.rpartition(": ")[2] for each in found] == [
        "Both success and failed conditions cannot be true at the same time"
    ]


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([], "Unknown"),
        ([condition("Running")], "Running"),
        ([condition("Running", "False"), condition("Failed")], "Failed"),
    ],
)
def test_columns(conditions: list[dict[str, Any]], status: str) -> None:
    obj = stored(
        "storagemigration.k8s.io/v1beta1",
        "StorageVersionMigration",
        {**fields("apps", "deployments"), "status": {"conditions": conditions}},
    )
    assert STORAGE_VERSION_MIGRATION.cells(obj, 0) == ["m", "deployments.apps", status]
