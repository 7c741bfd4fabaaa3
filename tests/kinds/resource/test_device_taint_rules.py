"""Tests of DeviceTaintRules: their versions, the time of the taint, and their validation."""

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.engine.features.gates import switch
from ctrlmgr.engine.tables.ages import ages_at
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.kinds.resource.device_taint_rules import DeviceTaintRuleStrategy
from ctrlmgr.kinds.resource.printers import DEVICE_TAINT_RULE
from tests.kinds.write import create, update

GROUP = "resource.k8s.io"
RULE = DeviceTaintRuleStrategy()
NOW = "2024-05-01T12:00:00Z"
BEFORE = "2024-05-01T11:00:00Z"


@pytest.fixture(autouse=True)
def default_gates() -> Iterator[None]:
    yield
    switch({})


def rule(selector: dict[str, Any] | None = None, **taint: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"taint": {"key": "a.b/broken", "effect": "NoExecute", **taint}}
    return {"metadata": {"name": "r"}, "spec": spec if selector is None else {**spec, "deviceSelector": selector}}


@pytest.mark.parametrize("is_on", [False, True])
def test_both_versions_need_the_gate(is_on: bool) -> None:
    switch({"DRADeviceTaintRules": is_on})
    versions = ["v1alpha3", "v1beta2"]
    kinds = builtin_kinds(served=[f"{GROUP}/{each}" for each in versions])
    found = [kinds.find(GROUP, each, "devicetaintrules") for each in versions]
    assert [each is not None for each in found] == [is_on, is_on]


def test_both_versions_have_the_storage_version_of_kubernetes() -> None:
    """Kubernetes 1.36 stores the rules in the version that 1.35 knows, which discovery's hash shows."""
    switch({"DRADeviceTaintRules": True})
    versions = ["v1alpha3", "v1beta2"]
    kinds = builtin_kinds(served=[f"{GROUP}/{each}" for each in versions])
    found = [kinds.find(GROUP, each, "devicetaintrules") for each in versions]
    assert [each and each.stored_version for each in found] == ["v1alpha3", "v1alpha3"]
    (alpha, _) = found
    assert alpha is not None
    assert alpha.to_storage is not None
    assert alpha.to_storage({"apiVersion": f"{GROUP}/v1alpha3"}) == {"apiVersion": f"{GROUP}/v1beta2"}


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        (rule(), []),
        (rule({}, value="x", effect="None"), []),
        (rule({"driver": "d.x", "pool": "a/b", "device": "d-0"}), []),
        (
            rule({"driver": "", "pool": "", "device": "D"}),
            [
                "spec.deviceSelector.driver: Required value",
                "spec.deviceSelector.pool: Required value",
                'spec.deviceSelector.device: Invalid value: "D": a lowercase RFC 1123 label must consist of lower case '
                "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
                "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ],
        ),
        (rule(effect=""), ["spec.taint.effect: Required value"]),
        (
            rule(effect="PreferNoSchedule"),
            [
                'spec.taint.effect: Unsupported value: "PreferNoSchedule": supported values: "NoExecute", '
                '"NoSchedule", "None"'
            ],
        ),
        (
            rule(value="a b"),
            [
                'spec.taint.value: Invalid value: "a b": a valid label must be an empty string or consist of '
                "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ],
        ),
    ],
)
def test_a_rule_is_validated(fields: dict[str, Any], errors: list[str]) -> None:
    assert create(RULE, fields, namespaced=False).messages == errors


def test_a_new_taint_gets_the_time_of_its_addition() -> None:
    assert create(RULE, rule(), namespaced=False).object["spec"]["taint"]["timeAdded"] == NOW
    assert create(RULE, rule(timeAdded=BEFORE), namespaced=False).object["spec"]["taint"]["timeAdded"] == BEFORE


@pytest.mark.parametrize(
    ("change", "added"),
    [
        ({"value": "y"}, BEFORE),
        ({"effect": "NoSchedule"}, NOW),
        ({"effect": "NoSchedule", "timeAdded": "2024-05-01T10:00:00Z"}, "2024-05-01T10:00:00Z"),
    ],
)
def test_the_time_follows_the_effect(change: dict[str, str], added: str) -> None:
    old = rule(timeAdded=BEFORE)
    new = rule(None, **{"timeAdded": BEFORE, **change})
    found = update(RULE, old, {"spec": new["spec"]}, namespaced=False)
    assert found.messages == []
    assert found.object["spec"]["taint"]["timeAdded"] == added


def test_an_unknown_effect_may_stay() -> None:
    old = rule(effect="Later", timeAdded=BEFORE)
    assert update(RULE, old, {"spec": {**old["spec"], "deviceSelector": {}}}, namespaced=False).messages == []


def test_a_status_has_at_most_eight_conditions() -> None:
    each = {"status": "True", "reason": "R", "message": "", "lastTransitionTime": NOW}
    conditions = [{"type": f"C{at}", **each} for at in range(9)]
    found = update(
        RULE, rule(timeAdded=BEFORE), {"status": {"conditions": conditions}}, subresource="status", namespaced=False
    )
    assert found.messages == ["status.conditions: Too many: 9: must have at most 8 items"]


def test_the_columns_show_the_taint() -> None:
    now = 1_714_568_400_000_000
    fields = rule(value="x", timeAdded=BEFORE)
    fields["metadata"]["creationTimestamp"] = NOW
    assert [each.name for each in DEVICE_TAINT_RULE.columns] == ["Name", "Key", "Value", "Effect", "TimeAdded", "Age"]
    assert list(DEVICE_TAINT_RULE.row(fields, ages_at(now))) == ["a.b/broken", "x", "NoExecute", "120m", "60m"]
