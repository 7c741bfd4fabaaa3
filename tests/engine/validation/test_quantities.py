import pytest

from ctrlmgr.api.field import Path
from ctrlmgr.engine.validation.quantities import (
    is_extended,
    is_overcommittable,
    validate_amount,
    validate_amounts,
    validate_container_resource_name,
    validate_quota_resource_name,
    validate_resource_name,
)

FIELD = Path("f")
STANDARD = "must be a standard resource type or fully qualified"
CONTAINER = "must be a standard resource for containers"
QUOTA = "must be a standard resource for quota"
EXTENDED = "doesn't follow extended resource name standard"


@pytest.mark.parametrize(
    ("name", "any_resource", "container", "quota"),
    [
        ("cpu", [], [], []),
        ("hugepages-2Mi", [], [], []),
        ("example.com/gpu", [], [], []),
        ("limits.memory", [], [CONTAINER], []),
        ("pods", [], [CONTAINER], []),
        ("storage", [], [CONTAINER], [QUOTA]),
        ("gpu", [STANDARD], [STANDARD, CONTAINER], [STANDARD, QUOTA]),
        ("requests.example.com/gpu", [], [EXTENDED], []),
    ],
)
def test_valid_resource_names(name: str, any_resource: list[str], container: list[str], quota: list[str]) -> None:
    checks = (
        (validate_resource_name, any_resource),
        (validate_container_resource_name, container),
        (validate_quota_resource_name, quota),
    )
    for check, problems in checks:
        assert [error.body for error in check(name, FIELD)] == [f'Invalid value: "{name}": {e}' for e in problems]


@pytest.mark.parametrize(
    ("name", "amount", "problems"),
    [
        ("cpu", "100m", []),
        ("cpu", "-1", ["must be greater than or equal to 0"]),
        ("pods", "1500m", ["must be an integer"]),
        ("example.com/gpu", "-500m", ["must be greater than or equal to 0", "must be an integer"]),
    ],
)
def test_valid_resource_amounts(name: str, amount: str, problems: list[str]) -> None:
    errors = validate_amount(name, amount, FIELD)
    assert [error.body for error in errors] == [f'Invalid value: "{amount}": {each}' for each in problems]


def test_errors_of_node_resources_have_a_field_path() -> None:
    assert validate_amounts(None, FIELD) == []
    assert [error.field for error in validate_amounts({"cpu": "1", "memory": "-1"}, FIELD)] == ["f.memory"]


@pytest.mark.parametrize(
    ("name", "overcommittable", "extended"),
    [
        ("cpu", True, False),
        ("hugepages-2Mi", False, False),
        ("example.com/gpu", False, True),
        ("x.kubernetes.io/y", True, False),
    ],
)
def test_classes_of_resources(name: str, overcommittable: bool, extended: bool) -> None:
    assert is_overcommittable(name) == overcommittable
    assert is_extended(name) == extended
