from typing import Any

import pytest

from ctrlmgr.kinds.apiserverinternal.printers import STORAGE_VERSION
from ctrlmgr.kinds.apiserverinternal.storage_version import StorageVersionStrategy
from tests.kinds.write import create, stored, update

STRATEGY = StorageVersionStrategy()
FIELDS: dict[str, Any] = {"metadata": {"name": "apps.deployments"}, "spec": {}}
SERVER = {
    "apiServerID": "a",
    "encodingVersion": "apps/v1",
    "decodableVersions": ["apps/v1", "apps/v1beta1"],
    "servedVersions": ["apps/v1"],
}
CONDITION = {"type": "AllEncodingVersionsEqual", "status": "True", "reason": "Why", "message": "so"}


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("apps.deployments", []),
        ("core.v1.pods", []),
        ("pods", ["name must be in the form of <group>.<resource>"]),
        ("apps.9", ["the resource segment a DNS-1035 label must consist of lower case alphanumeric characters"]),
        ("A.pods", ["the group segment a lowercase RFC 1123 subdomain must consist of lower case alphanumeric"]),
    ],
)
def test_names_have_a_group_and_a_resource(name: str, problems: list[str]) -> None:
    found = create(STRATEGY, {"metadata": {"name": name}}, namespaced=False).messages
    assert len(found) == len(problems)
    assert all(problem in message for problem, message in zip(problems, found, strict=True))


def status_errors(status: dict[str, Any]) -> list[str]:
    return update(STRATEGY, FIELDS, {"status": status}, namespaced=False, subresource="status").messages


def test_a_valid_status_is_accepted() -> None:
    assert (
        status_errors({"storageVersions": [SERVER], "commonEncodingVersion": "apps/v1", "conditions": [CONDITION]})
        == []
    )
    assert status_errors({}) == []


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (
            {"storageVersions": [SERVER, SERVER], "commonEncodingVersion": "apps/v1"},
            'status.storageVersions[1].apiServerID: Duplicate value: "a"',
        ),
        (
            {"storageVersions": [SERVER]},
            "status.commonEncodingVersion: Invalid value: null: the common encoding version is apps/v1",
        ),
        (
            {"storageVersions": [SERVER], "commonEncodingVersion": "apps/v2"},
            'status.commonEncodingVersion: Invalid value: "apps/v2": the actual common encoding version is apps/v1',
        ),
        (
            {"commonEncodingVersion": "apps/v1"},
            'status.commonEncodingVersion: Invalid value: "apps/v1": should be nil if servers do not agree on the same '
            "encoding version, or if there is no server reporting the supported versions yet",
        ),
        (
            {"storageVersions": [{**SERVER, "servedVersions": ["v9"]}], "commonEncodingVersion": "apps/v1"},
            'status.storageVersions[0].servedVersions[0]: Invalid value: "v9": individual served version : v9 must be '
            "included in decodableVersions : [apps/v1 apps/v1beta1]",
        ),
        (
            {
                "storageVersions": [{**SERVER, "decodableVersions": ["apps/v1", "a/b/c"]}],
                "commonEncodingVersion": "apps/v1",
            },
            'status.storageVersions[0].decodableVersions[1]: Invalid value: "a/b/c": an apiVersion is a DNS-1035 '
            "label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
            "validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. "
            "'example.com/MyVersion')",
        ),
        (
            {
                "storageVersions": [{"apiServerID": "a", "encodingVersion": "/v1", "decodableVersions": ["/v1"]}],
                "commonEncodingVersion": "/v1",
            },
            'status.storageVersions[0].encodingVersion: Invalid value: "/v1": group part: must be non-empty',
        ),
        (
            {
                "storageVersions": [{"apiServerID": "a", "encodingVersion": "v1", "decodableVersions": ["v2"]}],
                "commonEncodingVersion": "v1",
            },
            'status.storageVersions[0].decodableVersions: Invalid value: ["v2"]: decodableVersions must include '
            "encodingVersion v1",
        ),
        (
            {"conditions": [CONDITION, CONDITION]},
            'status[1].type: Invalid value: "AllEncodingVersionsEqual": the type of the condition is not unique, it '
            "also appears in conditions[0]",
        ),
        ({"conditions": [{**CONDITION, "reason": ""}]}, "status[0].reason: Required value"),
        ({"conditions": [{**CONDITION, "message": ""}]}, "status[0].message: Required value"),
    ],
)
def test_an_invalid_status_is_refused(status: dict[str, Any], error: str) -> None:
    assert error in status_errors(status)


def test_columns() -> None:
    servers = [{**SERVER, "apiServerID": name} for name in "abcd"]
    obj = stored(
        "internal.apiserver.k8s.io/v1alpha1", "StorageVersion", {**FIELDS, "status": {"storageVersions": servers}}
    )
    assert STORAGE_VERSION.cells(obj, 0)[1:3] == ["<unset>", "a=apps/v1,b=apps/v1,c=apps/v1 + 1 more..."]
