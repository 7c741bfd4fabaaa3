"""Tests of webhook configurations: refusals, the order of errors, and invalid fields that an update does not change."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.kinds.admissionregistration.admission_webhooks import WebhookConfigurationStrategy
from tests.kinds.write import create, update

VALIDATING, MUTATING = WebhookConfigurationStrategy(mutates=False), WebhookConfigurationStrategy(mutates=True)
HOOK: dict[str, Any] = {
    "name": "a.b.c",
    "clientConfig": {"url": "https://h"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
VERSIONS = "must specify one of v1, v1beta1"


def hooks(*each: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "w"}, "webhooks": [{**HOOK, **hook} for hook in each]}


def creation_errors(*each: dict[str, Any], strategy: WebhookConfigurationStrategy = VALIDATING) -> list[str]:
    return create(strategy, hooks(*each), namespaced=False).messages


def kept(before: dict[str, Any], **change: Any) -> list[str]:
    """Return the errors for an update of a webhook whose stored form is `before`."""
    return update(VALIDATING, hooks(before), {"webhooks": [{**HOOK, **before, **change}]}, namespaced=False).messages


def test_the_errors_of_an_empty_hook_have_this_order() -> None:
    empty = create(MUTATING, {"metadata": {"name": "w"}, "webhooks": [{}]}, namespaced=False)
    assert empty.messages == [
        "webhooks[0].name: Required value",
        "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        f"webhooks[0].admissionReviewVersions: Required value: {VERSIONS}",
    ]


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"name": "a.b"}, [
        'name: Invalid value: "a.b": should be a domain with at least three segments separated by dots',
    ]),
    ({"timeoutSeconds": 31}, ["timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"]),
    ({"admissionReviewVersions": ["v9"]}, [
        'admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1',
    ]),
    ({"clientConfig": {"url": "http://h"}}, [
        'clientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme; desired format: '
        "https://host[/path]",
    ]),
    ({"clientConfig": {"service": {"name": "s", "namespace": "", "port": 0, "path": "a"}}}, [
        "clientConfig.service.name: Required value",
        "clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
        "clientConfig.service.path: Invalid value: \"a\": must start with a '/'",
        "clientConfig.service.path: Invalid value: \"a\": segment[0] may not be empty",
    ]),
    ({"matchConditions": [{"name": "c", "expression": " x"}]}, [
        "matchConditions[0].expression: Invalid value: \"x\": compilation failed: ERROR: <input>:1:1: undeclared "
        "reference to 'x' (in container '')\n | x\n | ^",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("hook", "messages"), REFUSED)
def test_an_invalid_hook_has_kubernetes_errors(hook: dict[str, Any], messages: list[str]) -> None:
    assert creation_errors(hook) == [f"webhooks[0].{each}" for each in messages]


def test_names_of_hooks_must_differ() -> None:
    assert creation_errors({}, {}) == ['webhooks[1].name: Duplicate value: "a.b.c"']


STAYS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"matchConditions": [{"name": "c", "expression": "x"}]}, {}),
    ({"sideEffects": "Some"}, {"sideEffects": "Unknown"}),
    ({"admissionReviewVersions": ["v9"]}, {}),
    ({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}}, {}),
]


@pytest.mark.parametrize(("before", "change"), STAYS)
def test_existing_errors_are_tolerated(before: dict[str, Any], change: dict[str, Any]) -> None:
    assert creation_errors(before) != []
    assert kept(before, **change) == []


def test_changed_match_conditions_are_checked() -> None:
    conditions = [{"name": "c", "expression": "x"}]
    assert (
        len(kept({"matchConditions": conditions}, matchConditions=[*conditions, {"name": "d", "expression": "y"}])) == 2
    )
