from typing import Any

import pytest

from ctrlmgr.kinds.core.resource_quota import ResourceQuotaStrategy
from tests.kinds.write import create, update

STRATEGY = ResourceQuotaStrategy()
METADATA = {"name": "q", "namespace": "ns"}
SELECTOR = "spec.scopeSelector.matchExpressions"


def quota(**spec: Any) -> dict[str, Any]:
    return {"metadata": METADATA, "spec": spec}


def selecting(**requirement: Any) -> dict[str, Any]:
    return {"scopeSelector": {"matchExpressions": [requirement]}}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ({"hard": {"pods": "10", "requests.example.com/gpu": "1", "count/widgets.example.com": "5"}}, []),
        (
            {"hard": {"storage": "1Gi"}},
            ['hard[storage]: Invalid value: "storage": must be a standard resource for quota'],
        ),
        ({"hard": {"pods": "1500m"}}, ['hard[pods]: Invalid value: "1500m": must be an integer']),
        ({"hard": {"pods": "1"}, "scopes": ["BestEffort"]}, []),
        ({"scopes": ["Odd"]}, ['scopes: Invalid value: ["Odd"]: unsupported scope']),
        (
            {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]},
            ['scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
        ),
        (
            {"scopes": ["Terminating", "NotTerminating"]},
            ['scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
        ),
    ],
)
def test_quotas(spec: dict[str, Any], messages: list[str]) -> None:
    assert create(STRATEGY, quota(**spec)).messages == [f"spec.{each}" for each in messages]


@pytest.mark.parametrize(
    ("requirement", "messages"),
    [
        ({"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}, []),
        ({"scopeName": "BestEffort", "operator": "Exists"}, []),
        (
            {"scopeName": "PriorityClass", "operator": "In"},
            [
                ".values: Required value: "
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            ],
        ),
        (
            {"scopeName": "PriorityClass", "operator": "Exists", "values": ["x"]},
            [
                '.values: Invalid value: ["x"]: '
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            ],
        ),
        (
            {"scopeName": "PriorityClass", "operator": "Odd"},
            ['.operator: Invalid value: "Odd": not a valid selector operator'],
        ),
        (
            {"scopeName": "Terminating", "operator": "DoesNotExist"},
            [
                ".operator: Invalid value: \"DoesNotExist\": must be 'Exists' when scope is any of "
                "ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
            ],
        ),
        (
            {"scopeName": "Odd", "operator": "Exists"},
            ['.scopeName: Invalid value: "Odd": unsupported scope'],
        ),
    ],
)
def test_scope_selectors(requirement: dict[str, Any], messages: list[str]) -> None:
    written = create(STRATEGY, quota(**selecting(**requirement)))
    assert written.messages == [f"{SELECTOR}{each}" for each in messages]


def test_a_scope_selector_must_match_the_resources() -> None:
    spec = {"hard": {"cpu": "1"}, **selecting(scopeName="BestEffort", operator="Exists")}
    assert create(STRATEGY, quota(**spec)).messages == [
        f'{SELECTOR}: Invalid value: {{"MatchExpressions":[{{"ScopeName":"BestEffort","Operator":"Exists",'
        '"Values":null}]}: unsupported scope applied to resource'
    ]


def test_scopes_are_immutable_in_any_order() -> None:
    old = quota(scopes=["BestEffort", "Terminating"])
    assert update(STRATEGY, old, {"spec": {"scopes": ["Terminating", "BestEffort"]}}).errors == []
    assert update(STRATEGY, old, {"spec": {"scopes": ["BestEffort"]}}).messages == [
        'spec.scopes: Invalid value: ["BestEffort"]: field is immutable'
    ]


def test_the_used_amounts_are_checked() -> None:
    status = {"hard": {"pods": "10"}, "used": {"pods": "500m", "storage": "1"}}
    assert update(STRATEGY, quota(), {"status": status}, subresource="status").messages == [
        'status.used[pods]: Invalid value: "500m": must be an integer',
        'status.used[storage]: Invalid value: "storage": must be a standard resource for quota',
    ]


@pytest.mark.parametrize(
    ("hard", "warnings"),
    [
        (
            {"requests.cpu": "2", "limits.cpu": "1"},
            ["ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"],
        ),
        (
            {"memory": "2Gi", "limits.memory": "1Gi"},
            ["ResourceQuota memory (2Gi) should be less than limits.memory (1Gi)"],
        ),
        ({"requests.cpu": "1", "limits.cpu": "1", "ephemeral-storage": "2", "limits.ephemeral-storage": "1"}, []),
    ],
)
def test_requests_above_limits_cause_a_warning(hard: dict[str, str], warnings: list[str]) -> None:
    assert create(STRATEGY, {"metadata": {"name": "q"}, "spec": {"hard": hard}}).warnings == warnings
