from typing import Any

import pytest

from ctrlmgr.kinds.core.limit_range import LimitRangeStrategy
from tests.kinds.write import create

STRATEGY = LimitRangeStrategy()
METADATA = {"name": "l"}


def limited(*limits: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": METADATA, "spec": {"limits": list(limits)}}


@pytest.mark.parametrize(
    ("limit", "default", "asked"),
    [
        ({"max": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"default": {"cpu": "1"}, "max": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "1"}),
        ({"min": {"cpu": "1"}}, None, {"cpu": "1"}),
        ({"defaultRequest": {"cpu": "1"}, "max": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "1"}),
        ({"min": {"cpu": "1"}, "max": {"cpu": "2", "memory": "1Gi"}}, *[{"cpu": "2", "memory": "1Gi"}] * 2),
    ],
)
def test_a_containers_defaults_are_derived(
    limit: dict[str, Any], default: dict[str, str] | None, asked: dict[str, str]
) -> None:
    (found,) = create(STRATEGY, limited({"type": "Container", **limit})).object["spec"]["limits"]
    assert (found.get("default"), found.get("defaultRequest")) == (default, asked)


def test_other_types_have_no_defaults() -> None:
    limit = {"type": "Pod", "max": {"cpu": "2"}}
    assert create(STRATEGY, limited(limit)).object["spec"]["limits"] == [limit]


def test_a_nameless_limit_range_gets_a_name() -> None:
    name = create(STRATEGY, {"spec": {"limits": []}}).object["metadata"]["name"]
    assert len(name) == 36
    assert STRATEGY.allow_create_on_update


@pytest.mark.parametrize(
    ("limit", "messages"),
    [
        ({"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "2"}}, []),
        ({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}}, []),
        ({"type": "example.com/Widget", "max": {"storage": "1Gi"}}, []),
        ({"type": "Widget"}, ['type: Invalid value: "Widget": must be a standard limit type or fully qualified']),
        (
            {"type": "Container", "max": {"storage": "1"}},
            [
                f'{field}[storage]: Invalid value: "storage": must be a standard resource for containers'
                for field in ("max", "default", "defaultRequest")
            ],
        ),
        (
            {"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},
            [
                f"{field}: Forbidden: may not be specified when `type` is 'Pod'"
                for field in ("default", "defaultRequest")
            ],
        ),
        (
            {"type": "PersistentVolumeClaim"},
            ["limits: Required value: either minimum or maximum storage value is required, but neither was provided"],
        ),
        (
            {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
            ['min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'],
        ),
        (
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}},
            ['maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
        ),
        (
            {"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}},
            ['maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'],
        ),
        (
            {
                "type": "Container",
                "min": {"cpu": "3"},
                "max": {"cpu": "4"},
                "default": {"cpu": "1"},
                "defaultRequest": {"cpu": "2"},
            },
            [
                'defaultRequest[cpu]: Invalid value: "2": min value 3 is greater than default request value 2',
                'defaultRequest[cpu]: Invalid value: "2": '
                "default request value 2 is greater than default limit value 1",
                'default[cpu]: Invalid value: "3": min value 3 is greater than default value 1',
            ],
        ),
        (
            {
                "type": "Container",
                "max": {"cpu": "1"},
                "default": {"cpu": "2"},
                "defaultRequest": {"cpu": "2"},
            },
            [
                'defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than max value 1',
                'default[cpu]: Invalid value: "1": default value 2 is greater than max value 1',
            ],
        ),
        (
            {"type": "Container", "default": {"a.b/c": "2"}, "defaultRequest": {"a.b/c": "1"}},
            [
                'defaultRequest[a.b/c]: Invalid value: "1": '
                "default value 2 must equal to defaultRequest value 1 in a.b/c"
            ],
        ),
    ],
)
def test_limits(limit: dict[str, Any], messages: list[str]) -> None:
    assert create(STRATEGY, limited(limit)).messages == [f"spec.limits[0].{each}" for each in messages]


def test_types_must_be_unique() -> None:
    limit = {"type": "Pod", "max": {"cpu": "2"}}
    assert create(STRATEGY, limited(limit, limit)).messages == ['spec.limits[1].type: Duplicate value: "Pod"']


def test_ratios_of_very_large_amounts_are_computed_in_units() -> None:
    limit = {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "1e18"}}
    (message,) = create(STRATEGY, limited(limit)).messages
    assert message.endswith("ratio 1e18 is greater than max/min = 2.000000")
