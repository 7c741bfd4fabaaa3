"""Tests that invalid CustomResourceDefinitions are refused with the same causes and paths as in Kubernetes."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

import pytest

from ctrlmgr.api.field import FieldError
from ctrlmgr.extensions.definition_defaults import prepare_changed, prepare_new, set_defaults
from ctrlmgr.extensions.validation import validate_definition, validate_status, warnings

SCHEMA = "spec.validation.openAPIV3Schema"
FOO = f"{SCHEMA}.properties[foo]"
STRING = {"type": "string"}
LIST_TYPE, MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def _version(schema: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object"} if schema is None else schema
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **fields}


def _definition(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": list(versions or (_version(),)),
            **spec,
        },
    }
    set_defaults(definition)
    prepare_new(definition)
    return definition


def _of(schema: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return _definition(_version({"type": "object", "properties": {"foo": schema}}, **fields))


def _told(errors: list[FieldError]) -> list[str]:
    return sorted(error.message for error in errors)


def test_a_minimal_definition_is_valid_and_defaulted() -> None:
    definition = _definition()
    assert validate_definition(definition) == []
    assert definition["spec"]["names"] == {
        "plural": "things",
        "kind": "Thing",
        "singular": "thing",
        "listKind": "ThingList",
    }
    assert definition["spec"]["conversion"] == {"strategy": "None"}
    assert definition["status"] == {"storedVersions": ["v1"]}


SPECS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"group": ""},
        [
            'metadata.name: Invalid value: "things.example.com": must be spec.names.plural+"."+spec.group',
            "spec.group: Required value",
        ],
    ),
    ({"scope": "Both"}, ['spec.scope: Unsupported value: "Both": supported values: "Cluster", "Namespaced"']),
    (
        {"names": {"plural": "things", "kind": "Thing", "listKind": "Thing"}},
        ['spec.names.listKind: Invalid value: "Thing": kind and listKind may not be the same'],
    ),
    (
        {"preserveUnknownFields": True},
        [
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set"
            " x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ],
    ),
    (
        {"conversion": {"strategy": "Webhook"}},
        [
            "spec.conversion.conversionReviewVersions: Required value",
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
        ],
    ),
    (
        {
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {"url": "http://u@h/?q#f"},
                    "conversionReviewVersions": ["v2", "v2"],
                },
            }
        },
        [
            'spec.conversion.conversionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of'
            " v1, v1beta1",
            'spec.conversion.conversionReviewVersions[1]: Invalid value: "v2": duplicate version',
            'spec.conversion.webhookClientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
            "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme;"
            " desired format: https://host[/path]",
            'spec.conversion.webhookClientConfig.url: Invalid value: "q": query parameters are not permitted in'
            " the URL",
            'spec.conversion.webhookClientConfig.url: Invalid value: "u": user information is not permitted in the URL',
        ],
    ),
    (
        {"conversion": {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}},
        [
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to"
            " Webhook",
        ],
    ),
]


@pytest.mark.parametrize(("spec", "messages"), SPECS)
def test_an_invalid_spec_has_kubernetes_errors(spec: dict[str, Any], messages: list[str]) -> None:
    assert _told(validate_definition(_definition(**spec))) == messages


FIELDS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, [f"{FOO}.type: Required value: must not be empty for specified object fields"]),
    ({"type": "array"}, [f"{FOO}.items: Required value: must be specified"]),
    (
        {"type": "array", "items": {}},
        [f"{FOO}.items.type: Required value: must not be empty for specified array items"],
    ),
    (
        {"type": "string", "anyOf": [{"type": "string", "description": "d"}]},
        [
            f"{FOO}.anyOf[0].description: Forbidden: must be empty to be structural",
            f"{FOO}.anyOf[0].type: Forbidden: must be empty to be structural",
        ],
    ),
    ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, []),
    (
        {"type": "string", "pattern": "("},
        [
            f'{FOO}.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp:'
            " missing closing ): `(`"
        ],
    ),
    (
        {"type": "text"},
        [
            f'{FOO}.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number",'
            f' "object",'
            ' "string"'
        ],
    ),
    ({"type": "object", "$ref": "#/x"}, [f"{FOO}.$ref: Forbidden: $ref is not supported"]),
    (
        {"type": "string", "default": 1},
        [f'{FOO}.default: Invalid value: "integer": {_} in body must be of type string: "integer"' for _ in [""]],
    ),
    (
        {"type": "object", "default": {"a": 1}},
        [f'{FOO}.default: Invalid value: {{"a":1}}: must not have unknown fields'],
    ),
    (
        {"type": "object", "properties": {"a": STRING}, "additionalProperties": STRING},
        [f"{FOO}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    ),
    (
        {"type": "array", "items": {"type": "object", "properties": {"k": STRING}}, LIST_TYPE: "map", MAP_KEYS: ["k"]},
        [
            f"{FOO}.items.properties[k].default: Required value: this property is in {MAP_KEYS}, so it must have"
            f" a default"
            " or be a required property"
        ],
    ),
    (
        {"type": "array", "items": {"type": "object"}, LIST_TYPE: "set"},
        [
            f"{FOO}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with"
            f" {LIST_TYPE}=set"
        ],
    ),
    (
        {"type": "object", "x-kubernetes-embedded-resource": True},
        [
            f"{FOO}.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without"
            " x-kubernetes-preserve-unknown-fields"
        ],
    ),
    (
        {
            "type": "string",
            "x-kubernetes-validations": [{"rule": " "}, {"rule": "true", "reason": "Odd", "message": "\n"}],
        },
        [
            f"{FOO}.x-kubernetes-validations[0].rule: Required value: rule is not specified",
            f'{FOO}.x-kubernetes-validations[1].message: Invalid value: "\\n": must be non-empty if specified',
            f'{FOO}.x-kubernetes-validations[1].reason: Unsupported value: "Odd": supported values:'
            f' "FieldValueDuplicate",'
            ' "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
        ],
    ),
]


@pytest.mark.parametrize(("field", "messages"), FIELDS)
def test_an_invalid_schema_has_kubernetes_errors(field: dict[str, Any], messages: list[str]) -> None:
    assert _told(validate_definition(_of(field))) == messages


def test_required_fields_of_the_root_must_be_declared() -> None:
    schema = {"type": "object", "allOf": [{"properties": {"a": {"minLength": 1}}}]}
    assert _told(validate_definition(_definition(_version(schema)))) == [
        f"{SCHEMA}.properties[a]: Required value: because it is defined in {SCHEMA}.allOf[0].properties[a]"
    ]


def test_defaults_in_embedded_metadata_must_be_valid_metadata() -> None:
    labels = {"type": "object", "additionalProperties": STRING, "default": {"bad key": "x"}}
    metadata = {"type": "object", "properties": {"labels": labels}}
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": metadata}}
    [error] = validate_definition(_of(embedded))
    assert error.field == f"{FOO}.properties[metadata].properties[labels].default"
    assert "must result in valid metadata: metadata.labels: Invalid value" in error.body


def test_errors_of_a_version_name_the_version() -> None:
    other = _version({"type": "object", "properties": {"foo": {}}}, name="v2", storage=False)
    assert _told(validate_definition(_definition(_version(), other))) == [
        "spec.versions[1].schema.openAPIV3Schema.properties[foo].type: Required value:"
        " must not be empty for specified object fields"
    ]


VERSIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"schema": {}}, ["spec.versions[0].schema.openAPIV3Schema: Required value"]),
    (
        {"deprecationWarning": "old"},
        ['spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'],
    ),
    (
        {"deprecated": True, "deprecationWarning": "a\nb"},
        [
            'spec.versions[0].deprecationWarning: Invalid value: "a\\nb": must only contain printable UTF-8 characters;'
            " non-printable character found at index 1"
        ],
    ),
    (
        {"additionalPrinterColumns": [{"type": "text", "jsonPath": "x"}]},
        [
            'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a simple json path starting with .',
            "spec.additionalPrinterColumns[0].name: Required value",
            'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of'
            " boolean,date,integer,number,string",
        ],
    ),
    (
        {"subresources": {"scale": {"specReplicasPath": ".status.x", "labelSelectorPath": ".x"}}},
        [
            'spec.subresources.scale.labelSelectorPath: Invalid value: ".x": should be a json path under either'
            " .spec or"
            " .status",
            'spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under .spec',
            "spec.subresources.scale.statusReplicasPath: Required value",
        ],
    ),
    (
        {"selectableFields": [{"jsonPath": ".foo"}, {"jsonPath": ".foo"}, {"jsonPath": ".bar"}, {"jsonPath": "foo"}]},
        [
            'spec.selectableFields[1].jsonPath: Duplicate value: ".foo"',
            'spec.selectableFields[2].jsonPath: Invalid value: ".bar": is an invalid path: does not refer to a'
            " valid field",
            'spec.selectableFields[3].jsonPath: Invalid value: "foo": is an invalid path: expected [ or . but got: foo',
        ],
    ),
]


@pytest.mark.parametrize(("fields", "messages"), VERSIONS)
def test_an_invalid_version_has_kubernetes_errors(fields: dict[str, Any], messages: list[str]) -> None:
    schema = {"type": "object", "properties": {"foo": STRING}}
    assert _told(validate_definition(_definition(_version(schema) | fields))) == messages


def test_exactly_one_version_is_stored_and_names_are_unique() -> None:
    twice = _definition(_version(), _version())
    assert [error.body.rpartition(": ")[2] for error in validate_definition(twice)] == [
        "must contain unique version names",
        "must have exactly one version marked as storage version",
        "must have the storage version v1",
    ]


def test_a_name_cannot_be_generated() -> None:
    definition = _definition()
    definition["metadata"]["generateName"] = "x-"
    assert _told(validate_definition(definition)) == [
        'metadata.generateName: Invalid value: "x-": must be spec.names.plural+"."+spec.group'
    ]


def test_items_of_a_map_are_formatted_as_structs() -> None:
    several = {"type": "array", LIST_TYPE: "map", MAP_KEYS: ["a"], "items": []}
    assert f'{FOO}.items: Invalid value: {{"Schema":null,"JSONSchemas":[]}}: must only have a single schema' in str(
        _told(validate_definition(_of(several)))
    ).replace("\\", "")


def test_a_status_subresource_limits_the_root_schema() -> None:
    schema = {"type": "object", "anyOf": [{"required": ["spec"]}], "properties": {"spec": {"type": "object"}}}
    [error] = validate_definition(_definition(_version(schema, subresources={"status": {}})))
    assert error.field == SCHEMA
    assert error.body.endswith("fields are allowed at the root of the schema if the status subresource is enabled")


def _changed(old: dict[str, Any], **spec: Any) -> dict[str, Any]:
    new = deepcopy(old)
    new["spec"] |= spec
    prepare_changed(new, old)
    return new


ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


def test_scope_and_kind_are_fixed_once_a_definition_is_established() -> None:
    old = _definition()
    names = {"plural": "things", "singular": "thing", "kind": "Other", "listKind": "OtherList"}
    assert validate_definition(_changed(old, scope="Cluster", names=names), old) == []
    old["status"] |= ESTABLISHED
    assert _told(validate_definition(_changed(old, scope="Cluster", names=names), old)) == [
        'spec.names.kind: Invalid value: "Other": field is immutable',
        'spec.scope: Invalid value: "Cluster": field is immutable',
    ]


def test_a_stored_version_cannot_be_removed() -> None:
    old = _definition()
    new = _changed(old, versions=[_version(name="v2")])
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    [error] = validate_definition(new, old)
    assert error.field == "status.storedVersions[0]"
    assert error.body.startswith('Invalid value: "v1": missing from spec.versions; v1 was previously a storage version')


def test_existing_errors_are_tolerated() -> None:
    old = _of({"type": "array", "items": {"type": "object"}, LIST_TYPE: "set"})
    assert validate_definition(old) != []
    assert validate_definition(_changed(old), old) == []


def test_certificates_must_be_valid_after_establishment_unless_they_never_were() -> None:
    bundle = base64.b64encode(b"no certificate").decode()
    client = {"url": "https://h/", "caBundle": bundle}
    webhook = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    old = _definition()
    assert validate_definition(_changed(old, conversion=webhook), old) == []
    old["status"] |= ESTABLISHED
    [error] = validate_definition(_changed(old, conversion=webhook), old)
    assert error.field == "spec.conversion.webhookClientConfig.caBundle"
    bad = _changed(old, conversion=webhook)
    assert validate_definition(_changed(bad), bad) == []


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (None, "FieldValueRequired"),
        ("soon", "FieldValueInvalid"),
        ("unapproved, testing", None),
        ("https://github.com/kubernetes/kubernetes/pull/1", None),
    ],
)
def test_groups_of_kubernetes_need_an_approval(annotation: str | None, reason: str | None) -> None:
    definition = _definition(group="x.k8s.io")
    definition["metadata"] = {
        "name": "things.x.k8s.io",
        "annotations": {"api-approved.kubernetes.io": annotation or ""},
    }
    errors = validate_definition(definition)
    assert [error.reason for error in errors] == ([reason] if reason else [])
    assert validate_definition(_changed(definition), definition) == []


def test_names_in_a_status_are_checked() -> None:
    [error] = validate_status({"status": {"acceptedNames": {"plural": "Bad"}}})
    assert error.field == "status.acceptedNames.plural"


def test_unknown_formats_cause_one_warning() -> None:
    definition = _of({"type": "string", "format": "phone"})
    assert warnings(definition) == ['unrecognized format "phone"']
    assert warnings(definition, definition) == []


def test_rules_are_not_checked_in_an_invalid_schema() -> None:
    rule = {"x-kubernetes-validations": [{"rule": "self.n < 5"}]}
    odd = {"type": "object", "properties": {"n": {"type": "Unknown"}}, **rule}
    (error,) = validate_definition(_of(odd))
    assert error.field == f"{FOO}.properties[n].type"
    apart = {"type": "object", "properties": {"odd": odd, "sound": {"type": "object", **rule}}}
    assert [each.field for each in validate_definition(_of(apart))] == [
        f"{FOO}.properties[odd].properties[n].type",
        f"{FOO}.properties[sound].x-kubernetes-validations[0].rule",
    ]


def test_rules_of_untyped_values_cannot_be_checked() -> None:
    unknown = {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [{"rule": "true"}] * 2}
    assert _told(validate_definition(_of(unknown))) == [
        f"{FOO}.x-kubernetes-validations: Internal error: internal error: failed to construct type information for "
        "x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
    ]
