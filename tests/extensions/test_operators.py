"""Tests of CustomResourceDefinitions as large and unusual as those of well-known operators: they are valid, are
processed fast, and their objects can be used.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.extensions.canonical_schema import canonicalize
from ctrlmgr.extensions.definition import Version, parse
from ctrlmgr.extensions.definition_defaults import prepare_new, set_defaults
from ctrlmgr.extensions.validation import validate_definition
from tests.calls import calls
from tests.extensions.operators import DEFINITIONS, a_definition


def _prepared(kind: str) -> dict[str, Any]:
    definition = a_definition(kind, DEFINITIONS[kind]())
    canonicalize(definition["spec"])
    set_defaults(definition)
    prepare_new(definition)
    return definition


def _version(kind: str) -> Version:
    return parse(_prepared(kind)).storage


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_a_large_definition_is_valid_and_compiles(kind: str) -> None:
    definition = _prepared(kind)
    assert validate_definition(definition) == []
    version = parse(definition).storage
    value = {"apiVersion": "operators.example.com/v1", "kind": kind, "metadata": {"name": "x"}}
    assert version.schema.read(value) == ([], None)
    assert version.validate(value)[0].message == "spec: Required value"


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_a_definition_costs_a_limited_number_of_calls_per_byte(kind: str) -> None:
    def work() -> None:
        definition = _prepared(kind)
        validate_definition(definition)
        parse(definition).storage.schema.read({})

    assert calls(work) < 8 * len(json.dumps(a_definition(kind, DEFINITIONS[kind]())))


def test_one_definition_exceeds_half_a_megabyte() -> None:
    assert len(json.dumps(a_definition("Monitoring", DEFINITIONS["Monitoring"]()))) > 500_000


def test_deeply_nested_containers_are_defaulted_pruned_and_checked() -> None:
    version = _version("Monitoring")
    ports: list[dict[str, Any]] = [
        {"containerPort": 80, "name": "a"},
        {"containerPort": 80, "protocol": "TCP", "odd": 1},
    ]
    spec: dict[str, Any] = {
        "role3": {"containers": [{"name": "c", "ports": ports, "resources": {"limits": {"cpu": "1x"}}}]}
    }
    value = {"spec": spec}
    unknown, _ = version.schema.read(value)
    assert unknown == ["spec.role3.containers[0].ports[1].odd"]
    assert (spec["replicas"], spec["retention"], ports[0]["protocol"]) == (1, "24h", "TCP")
    where = "spec.role3.containers[0]"
    assert [(error.field, error.reason) for error in version.validate(value)] == [
        (f"{where}.resources.limits.cpu", "FieldValueInvalid"),
        (f"{where}.ports[1]", "FieldValueDuplicate"),
    ]


def test_alternatives_and_formats_of_certificates_are_checked() -> None:
    version = _version("Certificate")
    value = {"spec": {"secretName": "s", "issuerRef": {"name": "i"}, "ipAddresses": ["::1"]}}
    version.schema.read(value)
    assert value["spec"]["issuerRef"] == {"name": "i", "kind": "Issuer"}
    messages = {error.message for error in version.validate(value)}
    assert '<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)' in messages
    assert any(message.startswith("spec.ipAddresses[0]: Invalid value") for message in messages)


def test_workflows_keep_undeclared_fields_and_check_embedded_objects() -> None:
    version = _version("Workflow")
    manifest = {"apiVersion": "v1", "metadata": {"name": "n", "odd": 1}, "data": {"a": {"b": 1}}}
    step = {"name": "s", "container": {"name": "c", "gpu": 1}, "resource": {"manifest": manifest, "odd": 2}}
    value = {"spec": {"templates": [step]}, "status": {"any": [{"thing": None}]}}
    unknown, error = version.schema.read(value)
    assert (unknown, error) == (
        ["spec.templates[0].resource.odd", "spec.templates[0].resource.manifest.metadata.odd"],
        None,
    )
    assert step["container"] == {"name": "c", "gpu": 1}
    assert value["status"] == {"any": [{"thing": None}]}
    assert [error.message for error in version.validate(value)] == [
        "spec.templates[0].resource.manifest.kind: Required value"
    ]


def test_nested_defaults_of_routes_are_applied() -> None:
    version = _version("Route")
    value: dict[str, Any] = {"spec": {}}
    version.schema.read(value)
    prefix = {"path": {"type": "PathPrefix", "value": "/"}}
    assert value == {"spec": {"rules": [{"matches": [prefix]}]}}
    assert version.validate(value) == []


def test_rules_of_databases_are_accepted_without_evaluation() -> None:
    rules = _version("Database").schema.rules
    assert rules is not None
    assert rules.properties["spec"].rules[0].problem == ""


def test_a_kilobyte_is_read_and_validated_by_a_thousand_calls() -> None:
    version = _version("Monitoring")
    env = [{"name": f"VARIABLE_{number}", "value": "x" * 20} for number in range(20)]
    value = {"spec": {"replicas": 2, "role0": {"containers": [{"name": "c", "image": "registry/app:1", "env": env}]}}}
    version.schema.read(value)
    assert version.validate(value) == []
    assert calls(lambda: (version.schema.read(value), version.validate(value))) < 1000
