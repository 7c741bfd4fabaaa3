"""Tests of APIServices: defaults, and refusals with their messages."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.kinds.apiregistration.api_services import APIServiceStrategy
from tests.kinds.write import create

STRATEGY = APIServiceStrategy()


def service(name: str = "v1.example.com", **spec: Any) -> dict[str, Any]:
    there = {"service": {"namespace": "n", "name": "s"}, "groupPriorityMinimum": 100, "versionPriority": 10}
    whole = {"group": "example.com", "version": "v1", **there, **spec}
    return {"metadata": {"name": name}, "spec": {field: value for field, value in whole.items() if value is not None}}


@pytest.mark.parametrize(
    ("obj", "messages"),
    [
        (service(), []),
        (service(insecureSkipTLSVerify=True), []),
        (service("v1.", group=""), []),
        (
            service("other"),
            ['metadata.name: Invalid value: "other": must be `spec.version+"."+spec.group`: "v1.example.com"'],
        ),
        (
            service("v2.", group="", version="v2"),
            ["spec.group: Required value: only v1 may have an empty group and it better be legacy kube"],
        ),
        (
            service(groupPriorityMinimum=-5, versionPriority=1001),
            [
                "spec.groupPriorityMinimum: Invalid value: -5: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
            ],
        ),
        (
            service(service=None, caBundle="bm9wZQ==", insecureSkipTLSVerify=True),
            [
                'spec.caBundle: Invalid value: "4 bytes": local APIServices may not have a caBundle',
                "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
            ],
        ),
        (
            service(service={"port": 65536}),
            [
                "spec.service.namespace: Required value",
                "spec.service.name: Required value",
                "spec.service.port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive",
            ],
        ),
        (
            service(caBundle="bm9wZQ==", insecureSkipTLSVerify=True),
            ["spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"],
        ),
    ],
)
def test_invalid_api_services_are_refused(obj: dict[str, Any], messages: list[str]) -> None:
    assert create(STRATEGY, obj).messages == messages


def test_versions_and_groups_must_be_valid_names() -> None:
    fields = [error.field for error in create(STRATEGY, service("V1.Bad_", group="Bad_", version="V1")).errors]
    assert fields == ["spec.group", "spec.version"]


def test_a_service_has_a_default_port_and_a_local_version_is_available() -> None:
    assert create(STRATEGY, service()).object["spec"]["service"]["port"] == 443
    (condition,) = create(STRATEGY, service(service=None)).object["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")


def test_a_name_cannot_be_generated() -> None:
    generated = {**service(), "metadata": {"generateName": "x-"}}
    assert [error.field for error in create(STRATEGY, generated).errors] == ["metadata.generateName", "metadata.name"]
    named = {**service(), "metadata": {"name": "v1.example.com", "generateName": "x-"}}
    assert [error.field for error in create(STRATEGY, named).errors] == ["metadata.generateName"]
