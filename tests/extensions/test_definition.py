"""Tests of the kinds that result from CustomResourceDefinitions: versions, names, columns, selectable fields, scale,
deprecation.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.version_order import newest_first
from ctrlmgr.extensions.definition import parse


def _definition(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"served": True, "storage": not at, **each} for at, each in enumerate(versions)],
            **spec,
        },
    }


SPEC = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "color": {"type": "string"},
                "on": {"type": "boolean"},
                "l": {"type": "array", "items": {"type": "string"}},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def test_versions_are_ordered_like_kubernetes() -> None:
    names = ["v1beta1", "v10", "foo1", "v2", "v11alpha2", "v12beta1", "v1", "foo10", "v3beta1"]
    preferred = ["v10", "v2", "v1", "v12beta1", "v3beta1", "v1beta1", "v11alpha2", "foo1", "foo10"]
    assert newest_first(names) == preferred
    definition = parse(_definition({"name": "v1alpha1"}, {"name": "v1"}, {"name": "v2", "served": False}))
    assert [version.name for version in definition.served] == ["v1", "v1alpha1"]
    assert definition.storage.name == "v1alpha1"


def test_deprecated_versions_have_their_own_or_kubernetes_warning() -> None:
    definition = parse(
        _definition(
            {"name": "v1beta1", "deprecated": True},
            {"name": "v1beta2", "deprecated": True, "deprecationWarning": "gone soon"},
            {"name": "v1"},
            {"name": "v2", "deprecated": True},
        )
    )
    texts = [definition.deprecation(version) for version in definition.versions.values()]
    assert texts == [
        "example.com/v1beta1 Thing is deprecated; use example.com/v1 Thing",
        "gone soon",
        None,
        "example.com/v2 Thing is deprecated",
    ]


def test_cells_have_the_columns_type_or_are_empty() -> None:
    columns = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "List", "type": "string", "jsonPath": ".spec.l"},
        {"name": "First", "type": "string", "jsonPath": ".spec.l[0]"},
        {"name": "Last", "type": "string", "jsonPath": ".spec.l[-1:]"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Mixed", "type": "integer", "jsonPath": ".spec.color"},
        {"name": "Number", "type": "number", "jsonPath": ".spec.replicas"},
        {"name": "Bad", "type": "date", "jsonPath": ".spec.color"},
        {"name": "Born", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Nope", "type": "string", "jsonPath": ".nope.deeper"},
    ]
    version = parse(_definition({"name": "v1", "additionalPrinterColumns": columns})).versions["v1"]
    value = {
        "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"color": "red", "l": ["p", "q"], "replicas": 2},
        "status": {"conditions": [{"type": "X", "status": "no"}, {"type": "Ready", "status": "True"}]},
    }
    cells = version.cells(value, lambda time: f"since {time}")
    assert cells == [
        "red", '["p","q"]', "p", "q", "True", None, 2.0, "<invalid>", "since 2026-01-01T00:00:00Z", None
    ]  # fmt: skip
    assert version.cells({}, str) == [None] * len(columns)


def test_a_version_without_columns_has_an_age_column() -> None:
    version = parse(_definition({"name": "v1"})).versions["v1"]
    assert [(column.name, column.type) for column in version.columns] == [("Age", "date")]


def test_selectable_fields_are_read_as_strings() -> None:
    fields = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.on"}, {"jsonPath": ".spec.replicas"}]
    version = parse(_definition({"name": "v1", "selectableFields": fields})).versions["v1"]
    value = {"spec": {"color": "red", "on": True}}
    assert {field.name: field.read(value) for field in version.selectable} == {
        "spec.color": "red",
        "spec.on": "true",
        "spec.replicas": "",
    }


def test_the_numbers_of_a_scale_are_checked_at_their_paths() -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"}
    raw = _definition(
        {"name": "v1", "schema": {"openAPIV3Schema": SPEC}, "subresources": {"scale": scale, "status": {}}}
    )
    version = parse(raw).versions["v1"]
    errors = version.validate({"spec": {"replicas": -1}, "status": {"n": "x", "s": 5}})
    assert [error.message for error in errors] == [
        ".spec.replicas: Invalid value: -1: should be a non-negative integer",
        ".status.n: Invalid value: 0: .status.n accessor error: x is of the type string, expected int64",
        '.status.s: Invalid value: "": .status.s accessor error: 5 is of the type int64, expected string',
    ]
    assert version.validate({}) == []


def test_errors_that_prevent_rules_report_unchecked_rules() -> None:
    rules = [{"rule": "self.spec.replicas > 0"}]
    raw = _definition({"name": "v1", "schema": {"openAPIV3Schema": {**SPEC, "x-kubernetes-validations": rules}}})
    version = parse(raw).versions["v1"]
    assert version.schema.rules is not None
    assert [each.raw for each in version.schema.rules.rules] == rules
    errors = version.validate({"spec": {"replicas": "x"}})
    assert [error.field for error in errors] == ["spec.replicas", "<nil>"]
    assert errors[1].body.startswith("Invalid value: null: some validation rules were not checked")


@pytest.mark.parametrize("path", [".spec[", ".a['b'", ".a[x]", ".a[?(@.b]", "....a"])
def test_columns_after_an_unreadable_one_are_omitted(path: str) -> None:
    columns = [
        {"name": "A", "type": "string", "jsonPath": ".a"},
        {"name": "B", "type": "string", "jsonPath": path},
        {"name": "C", "type": "string", "jsonPath": ".c"},
    ]
    version = parse(_definition({"name": "v1", "additionalPrinterColumns": columns})).versions["v1"]
    assert [column.name for column in version.columns] == ["A"]
