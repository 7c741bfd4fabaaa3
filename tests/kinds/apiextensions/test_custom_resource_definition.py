"""Tests of writes of CustomResourceDefinitions: defaults, the first status, causes of refusals, and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.errors import BadRequest
from ctrlmgr.kinds.apiextensions.custom_resource_definition import DefinitionStrategy
from tests.kinds.write import WriteResult, create, update

STRATEGY = DefinitionStrategy()


def _definition(schema: dict[str, Any], **spec: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    return {
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version], **spec},
        "status": {"storedVersions": ["v0"], "conditions": [{"type": "Established", "status": "True"}]},
    }


def _create(definition: dict[str, Any]) -> WriteResult:
    return create(STRATEGY, definition, namespaced=False)


def test_a_new_definition_is_defaulted_and_gets_the_servers_status() -> None:
    written = _create(_definition({"type": "object"}))
    assert written.messages == []
    assert written.object["spec"]["names"]["listKind"] == "ThingList"
    assert written.object["status"] == {"storedVersions": ["v1"]}


def test_a_definition_is_refused_with_its_causes() -> None:
    written = _create(_definition({"type": "object", "properties": {"a": {}}}))
    assert written.messages == [
        "spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified"
        " object fields"
    ]


def test_a_changed_definition_keeps_its_status_and_records_stored_versions() -> None:
    old = _definition({"type": "object"})
    version = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    both = [{**old["spec"]["versions"][0], "storage": False}, version]
    written = update(
        STRATEGY,
        old | {"status": {"storedVersions": ["v1"]}},
        {"spec": {**old["spec"], "versions": both}},
        namespaced=False,
    )
    assert written.messages == []
    assert written.object["status"] == {"storedVersions": ["v1", "v2"]}


def test_valid_rules_cause_no_warning() -> None:
    rules = {"x-kubernetes-validations": [{"rule": "self.a > 0"}]}
    spec = {"type": "object", "properties": {"a": {"type": "integer"}}, **rules}
    schema = {"type": "object", "properties": {"spec": spec}}
    assert _create(_definition(schema)).warnings == []


def test_undecodable_values_below_items_are_a_bad_request() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": 5}}}}
    with pytest.raises(BadRequest, match="cannot be handled as a CustomResourceDefinition: json: cannot unmarshal"):
        _create(_definition(schema))


def test_reserved_groups_cannot_be_served() -> None:
    definition = _definition({"type": "object"}, group="internal.ctrlmgr.io")
    definition["metadata"]["name"] = "things.internal.ctrlmgr.io"
    assert _create(definition).messages == [
        "spec.group: Forbidden: the control plane keeps objects of its own in this group"
    ]
