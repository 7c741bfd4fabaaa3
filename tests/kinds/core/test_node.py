from typing import Any

import pytest

from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import NOT_A_CIDR
from ctrlmgr.kinds.core.node import NodeStrategy
from tests.kinds.write import WriteResult, create, stored, update

STRATEGY = NodeStrategy()
FORM = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
NODE: dict[str, Any] = {"metadata": {"name": "n"}, "spec": {}}


def created(**fields: Any) -> WriteResult:
    return create(STRATEGY, {**NODE, **fields}, namespaced=False)


def updated(old: dict[str, Any], subresource: str = "", **change: Any) -> WriteResult:
    return update(STRATEGY, {**NODE, **old}, change, namespaced=False, subresource=subresource)


def test_allocatable_defaults_to_capacity() -> None:
    assert created(status={"capacity": {"cpu": "4"}}).object["status"]["allocatable"] == {"cpu": "4"}
    both = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}
    assert created(status=both).object["status"] == both
    assert STRATEGY.status_on_create


@pytest.mark.parametrize(
    ("given", "agreed"),
    [
        ({"podCIDR": "10.0.0.0/24"}, ("10.0.0.0/24", ["10.0.0.0/24"])),
        ({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, ("10.0.0.0/24", ["10.0.0.0/24", "fd00::/64"])),
        ({"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, ("10.0.1.0/24", ["10.0.1.0/24"])),
    ],
)
def test_pod_cidr_and_pod_cidrs_are_synchronized(given: dict[str, Any], agreed: tuple[str, list[str]]) -> None:
    spec = created(spec=given).object["spec"]
    assert (spec["podCIDR"], spec["podCIDRs"]) == agreed


@pytest.mark.parametrize(
    ("cidrs", "messages"),
    [
        (["10.0.0.0/24", "fd00::/64"], []),
        (["x"], [f'spec.podCIDRs[0]: Invalid value: "x": {NOT_A_CIDR}']),
        (
            ["10.0.0.0/24", "10.0.1.0/24"],
            [
                'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: '
                "may specify no more than one CIDR for each IP family"
            ],
        ),
        (
            ["10.0.0.0/24", "fd00::/64", "10.0.0.0/24"],
            [
                'spec.podCIDRs: Invalid value: ["10.0.0.0/24","fd00::/64","10.0.0.0/24"]: '
                "may specify no more than one CIDR for each IP family",
                'spec.podCIDRs[2]: Duplicate value: "10.0.0.0/24"',
            ],
        ),
    ],
)
def test_pod_cidrs(cidrs: list[str], messages: list[str]) -> None:
    assert created(spec={"podCIDRs": cidrs}).messages == messages


@pytest.mark.parametrize(
    ("taint", "messages"),
    [
        ({"effect": "NoExecute", "value": "v"}, []),
        ({"effect": ""}, [".effect: Required value"]),
        (
            {"effect": "X"},
            ['.effect: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'],
        ),
        (
            {"effect": "NoExecute", "value": "-"},
            [f'.value: Invalid value: "-": {name_formats.label_value("-")[0]}'],
        ),
    ],
)
def test_taints(taint: dict[str, str], messages: list[str]) -> None:
    assert created(spec={"taints": [{"key": "a", **taint}]}).messages == [f"metadata.taints[0]{e}" for e in messages]


def test_taints_must_be_unique() -> None:
    taints = [{"key": "a", "effect": "NoExecute", "value": each} for each in "xy"]
    assert created(spec={"taints": taints}).messages == [
        'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"y","Effect":"NoExecute","TimeAdded":null}: '
        "taints must be unique by key and effect pair"
    ]


def test_amounts_are_checked_in_the_status() -> None:
    message = 'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0'
    status = {"capacity": {"cpu": "-1"}, "allocatable": {}}
    assert created(status=status).messages == [message]
    assert updated({}, "status", status=status).messages == [message]


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        ({}, {"podCIDR": "10.0.0.0/24", "providerID": "p", "unschedulable": True}, []),
        (
            {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]},
            {"podCIDR": "10.0.1.0/24"},
            ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'],
        ),
        (
            {"providerID": "p"},
            {},
            ['spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'],
        ),
        ({}, {"externalID": "x"}, ["spec.externalID: Forbidden: may not be updated"]),
    ],
)
def test_a_set_provider_id_is_immutable(before: dict[str, Any], after: dict[str, Any], messages: list[str]) -> None:
    assert updated({"spec": before}, spec=after).messages == messages


def test_an_existing_invalid_cidr_is_tolerated() -> None:
    spec = {"podCIDR": "10.0.0.1/24", "podCIDRs": ["10.0.0.1/24"]}
    assert updated({"spec": spec}, spec={**spec, "unschedulable": True}).errors == []


def test_addresses_must_be_unique() -> None:
    address = {"type": "InternalIP", "address": "10.0.0.1"}
    status = {"addresses": [address, {**address, "address": "10.0.0.2"}, address]}
    assert updated({}, "status", status=status).messages == [
        'status.addresses[2]: Duplicate value: {"Type":"InternalIP","Address":"10.0.0.1"}'
    ]


def test_dynamic_kubelet_configuration_is_refused() -> None:
    source = {"configMap": {"name": "c"}}
    written = created(spec={"configSource": source}, status={"config": {"active": source}})
    assert "configSource" not in written.object["spec"]
    assert written.object["status"] == {}
    assert "configSource" not in updated({}, spec={"configSource": source}).object["spec"]
    kept = updated({"spec": {"configSource": source}}, spec={"configSource": source, "externalID": ""})
    assert kept.object["spec"]["configSource"] == source
    assert kept.warnings == ["spec.configSource: the feature is removed"]


def test_the_external_id_causes_a_warning() -> None:
    words = "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    assert created(spec={"externalID": "x"}).warnings == [words]


@pytest.mark.parametrize(("spec", "value"), [({}, "false"), ({"unschedulable": True}, "true")])
def test_a_node_is_selected_by_its_schedulability(spec: dict[str, Any], value: str) -> None:
    assert STRATEGY.selectable(stored("v1", "Node", {**NODE, "spec": spec})) == {"spec.unschedulable": value}


@pytest.mark.parametrize(
    ("features", "messages"),
    [
        (["A", "B/c1"], []),
        (["B", "A"], ['status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically']),
        (["A", "A"], ['status.declaredFeatures[1]: Duplicate value: "A"']),
        (["a"], [f'status.declaredFeatures[0]: Invalid value: "a": invalid feature name "a": {FORM}']),
        (
            ["A" * 254],
            [
                f'status.declaredFeatures[0]: Invalid value: "{"A" * 254}": invalid feature name "{"A" * 254}": '
                "must be no more than 253 characters"
            ],
        ),
    ],
)
def test_declared_features_are_sorted_names(features: list[str], messages: list[str]) -> None:
    node = {"metadata": {"name": "n"}, "status": {"declaredFeatures": features}}
    assert create(STRATEGY, node, namespaced=False).messages == messages


def test_swap_capacity_must_be_positive() -> None:
    node = {"metadata": {"name": "n"}, "status": {"nodeInfo": {"swap": {"capacity": 0}}}}
    assert create(STRATEGY, node, namespaced=False).messages == [
        "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero"
    ]


def test_non_canonical_networks_cause_warnings() -> None:
    node = {"metadata": {"name": "n"}, "spec": {"podCIDRs": ["10.1.2.3/24"]}}
    (warning,) = create(STRATEGY, node, namespaced=False).warnings
    assert warning.startswith('spec.podCIDRs[0]: CIDR value "10.1.2.3/24" is ambiguous')
