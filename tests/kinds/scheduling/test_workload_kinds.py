from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.engine.features.dropping import drop_disabled
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.engine.tables.ages import ages_at
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.kinds.scheduling.printers import POD_GROUP
from ctrlmgr.kinds.scheduling.workload_kinds import PodGroupStrategy, WorkloadStrategy
from tests.kinds.write import create, update

VERSION = "scheduling.k8s.io/v1alpha2"
GROUP, WORKLOAD = PodGroupStrategy(), WorkloadStrategy()
GANG: dict[str, Any] = {"gang": {"minCount": 3}}
CLAIM = {"name": "gpu", "resourceClaimName": "shared"}


@pytest.fixture(autouse=True)
def default_gates() -> Iterator[None]:
    yield
    switch({})


def group(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"schedulingPolicy": GANG, **spec}}


def workload(*templates: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "w", "namespace": "ns"}, "spec": {"podGroupTemplates": [*templates], **spec}}


@pytest.mark.parametrize("is_on", [False, True])
def test_both_kinds_need_the_version_and_the_gate(is_on: bool) -> None:
    switch({"GenericWorkload": is_on})
    kinds = builtin_kinds(served=[VERSION])
    found = {kinds.find("scheduling.k8s.io", "v1alpha2", each) is not None for each in ("workloads", "podgroups")}
    assert found == {is_on}


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({}, []),
        ({"schedulingPolicy": {"basic": {}}}, []),
        (
            {"schedulingPolicy": {}},
            ['spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'],
        ),
        (
            {"schedulingPolicy": {"basic": {}, **GANG}},
            ['spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`'],
        ),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, ["spec.schedulingPolicy.gang.minCount: Required value"]),
        (
            {"schedulingPolicy": {"gang": {"minCount": -1}}},
            ["spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"],
        ),
        (
            {"podGroupTemplateRef": {"workload": {"workloadName": "w"}}},
            ["spec.podGroupTemplateRef.workload.podGroupTemplateName: Required value"],
        ),
        ({"resourceClaims": [CLAIM]}, []),
        (
            {"resourceClaims": [CLAIM, CLAIM]},
            ['spec.resourceClaims[1]: Duplicate value: {"name":"gpu","resourceClaimName":"shared"}'],
        ),
        (
            {"resourceClaims": [{"name": "gpu"}]},
            [
                'spec.resourceClaims[0]: Invalid value: "": must specify one of: `resourceClaimName`, '
                "`resourceClaimTemplateName`"
            ],
        ),
        ({"resourceClaims": [CLAIM] * 5}, ["spec.resourceClaims: Too many: 5: must have at most 4 items"]),
        (
            {"disruptionMode": "All"},
            ['spec.disruptionMode: Unsupported value: "All": supported values: "Pod", "PodGroup"'],
        ),
        (
            {"priority": 1_000_000_001},
            ["spec.priority: Invalid value: 1000000001: must be less than or equal to 1000000000"],
        ),
        ({"schedulingConstraints": {"topology": [{}]}}, ["spec.schedulingConstraints.topology[0].key: Required value"]),
    ],
)
def test_a_pod_group_is_validated(spec: dict[str, Any], errors: list[str]) -> None:
    assert create(GROUP, group(**spec)).messages == errors


def test_the_spec_of_a_pod_group_is_immutable() -> None:
    before = create(GROUP, group()).object
    assert before["spec"]["disruptionMode"] == "Pod"
    changed = update(GROUP, before, {"spec": {**before["spec"], "schedulingPolicy": {"basic": {}}}})
    assert changed.messages == ["spec.schedulingPolicy: Invalid value: null: field is immutable"]


def test_claims_in_the_status_of_a_pod_group_are_those_of_its_spec() -> None:
    status = {"resourceClaimStatuses": [{"name": "gpu"}, {"name": "nic"}]}
    changed = update(GROUP, group(resourceClaims=[CLAIM]), {"status": status}, subresource="status")
    words = 'Invalid value: "nic": must match the name of an entry in `spec.resourceClaims`'
    assert changed.messages == [f"status.resourceClaimStatuses[1].name: {words}"]


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        (workload({"name": "a", "schedulingPolicy": GANG}), []),
        (workload(), ["spec.podGroupTemplates: Required value"]),
        (
            workload({"schedulingPolicy": GANG}, controllerRef={"kind": "Job"}),
            ["spec.controllerRef.name: Required value", "spec.podGroupTemplates[0].name: Required value"],
        ),
        (
            workload(*({"name": f"a{n}", "schedulingPolicy": GANG} for n in range(9))),
            ["spec.podGroupTemplates: Too many: 9: must have at most 8 items"],
        ),
    ],
)
def test_a_workload_is_validated(fields: dict[str, Any], errors: list[str]) -> None:
    assert create(WORKLOAD, fields).messages == errors


def test_the_templates_of_a_workload_are_immutable() -> None:
    changed = update(WORKLOAD, workload({"name": "a", "schedulingPolicy": GANG}), {"spec": workload()["spec"]})
    assert changed.messages == ["spec.podGroupTemplates: Invalid value: null: field is immutable"]


@pytest.mark.parametrize("is_on", [False, True])
def test_fields_of_gates_that_are_off_are_dropped(is_on: bool) -> None:
    switch({"WorkloadAwarePreemption": is_on})
    fields = group(disruptionMode="PodGroup", priority=5)
    drop_disabled("scheduling.k8s.io", "PodGroup", fields, None)
    assert ("disruptionMode" in fields["spec"], "priority" in fields["spec"]) == (is_on, is_on)


@pytest.mark.parametrize(
    ("conditions", "shown"),
    [
        ([], "Pending"),
        ([{"type": "PodGroupScheduled", "status": "True"}], "Scheduled"),
        ([{"type": "PodGroupScheduled", "status": "False"}], "Unschedulable"),
        ([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}], "PreemptionByScheduler"),
    ],
)
def test_the_state_of_a_pod_group_is_a_column(conditions: list[dict[str, str]], shown: str) -> None:
    fields = group() | {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"conditions": conditions}}
    assert [*POD_GROUP.row(fields, ages_at(0))][:3] == ["Gang", "<none>", shown]
