from typing import Any

import pytest

from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds.builtin import declared
from ctrlmgr.kinds.core.core_event import EventStrategy, StrictEventStrategy
from tests.engine.stage import builtin_kinds
from tests.kinds.write import create

STRATEGIES = {(each.api_version, each.kind): each.strategy for each in declared() if each.strategy is not None}


def named(flag: str, value: Any = True) -> set[str]:
    return {kind for (_, kind), strategy in STRATEGIES.items() if getattr(strategy, flag) == value}


@pytest.mark.parametrize(
    ("flag", "value", "kinds"),
    [
        (
            "allow_create_on_update",
            True,
            {"Lease", "Endpoints", "Event", "LimitRange", "Role", "ClusterRoleBinding", "RuntimeClass"},
        ),
        ("allow_unconditional_update", False, {"Lease", "CustomResourceDefinition", "APIService", "RuntimeClass"}),
        ("returns_deleted", True, {"Namespace", "ServiceAccount", "ResourceQuota", "StorageClass", "DeviceClass"}),
        ("any_finalizer", True, {"Lease", "Event", "CustomResourceDefinition"}),
        ("has_generation", True, {"IngressClass", "ValidatingWebhookConfiguration", "FlowSchema"}),
        ("status_on_create", True, {"Node"}),
    ],
)
def test_kinds_have_different_flags(flag: str, value: bool, kinds: set[str]) -> None:
    assert kinds <= named(flag, value)
    assert not {"ConfigMap", "Secret"} & named(flag, value)


def test_an_event_is_validated_by_its_api_group() -> None:
    old, new = (builtin_kinds().find(group, "v1", "events") for group in ("", "events.k8s.io"))
    assert old is not None
    assert new is not None
    assert type(old.strategy) is EventStrategy
    assert type(new.strategy) is StrictEventStrategy


def test_no_two_kinds_share_a_strategy() -> None:
    """Setting an attribute such as `has_status` on one strategy must not change another strategy."""
    assert len({id(strategy) for strategy in STRATEGIES.values()}) == len(STRATEGIES)


@pytest.mark.parametrize(
    ("name", "fits"), [("system:controller", True), ("Admin", True), ("a/b", False), ("a%b", False)]
)
def test_roles_can_have_any_name_valid_in_a_url(name: str, fits: bool) -> None:
    role = STRATEGIES["rbac.authorization.k8s.io/v1", "Role"]
    assert (create(role, {"metadata": {"name": name}}).errors == []) == fits


def test_the_base_strategy_adds_no_checks() -> None:
    fields = {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"a": 1}}
    assert create(Strategy(), fields) == (fields, [], [])
