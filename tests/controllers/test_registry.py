"""Tests of controller descriptors: which controllers are selected by any of their names, and that each controller can
be created.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from ctrlmgr.controllers import registry
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions
from ctrlmgr.errors import SettingsError


def descriptor(name: str, **declared: Any) -> ControllerDescriptor[NoOptions]:
    return ControllerDescriptor(name=name, does="nothing", builder="nowhere:build", options=NoOptions, **declared)


A = descriptor("a-controller", aliases=("a",), former_names=("the-a",))
B = descriptor("b-controller", aliases=("b",))
OFF = descriptor("off-controller", enabled_by_default=False)
FIRST = descriptor("first-controller", starts_first=True)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(["*"], [A, B], id="the star leaves out what is off by default"),
        pytest.param(["*", "off-controller"], [A, B, OFF], id="unless it is named"),
        pytest.param(["*", "-a"], [B], id="an alias with a minus"),
        pytest.param(["-a-controller", "*"], [B], id="before the star, too"),
        pytest.param(["b"], [B], id="an alias alone"),
        pytest.param(["a", "-a-controller"], [A], id="the first entry about a controller counts, by any name"),
        pytest.param(["-a"], [], id="without the star nothing else runs"),
        pytest.param(["*", "service", "-node-route-controller"], [A, B], id="cloud controllers are known and skipped"),
    ],
)
def test_controllers_are_selected_like_in_kube_controller_manager(
    wanted: list[str], expected: list[ControllerDescriptor[NoOptions]]
) -> None:
    assert registry.enabled(wanted, [A, B, OFF]) == (tuple(expected), ())


def test_a_name_can_be_given_without_its_suffix() -> None:
    chosen = registry.enabled(["horizontal-pod-autoscaler", "garbage-collector", "-job", "daemonset"]).descriptors
    names = {"daemonset-controller", "garbage-collector-controller", "horizontal-pod-autoscaler-controller"}
    assert {each.name for each in chosen} == names


def test_a_former_name_causes_a_warning() -> None:
    chosen = registry.enabled(["the-a"], [A, B])
    assert chosen == ((A,), ("controllers.enabled: the-a is called a-controller now",))
    assert registry.enabled(["endpoint-controller"]).descriptors[0].name == "endpoints-controller"


def test_a_controller_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingsError, match="no controller 'a-controler'; did you mean 'a-controller'"):
        registry.enabled(["a-controler"], [A, B])
    with pytest.raises(SettingsError, match="no controller 'zzz'; there are: a-controller, b-controller, a, the-a, b"):
        registry.enabled(["-zzz"], [A, B])


def test_controllers_start_in_order_and_names_are_unique() -> None:
    assert [*registry.by_name([A, FIRST])] == ["first-controller", "a-controller"]
    with pytest.raises(ValueError, match="two controllers are called a-controller"):
        registry.by_name([A, A])


@pytest.mark.parametrize("each", registry.ALL, ids=lambda each: each.name)
def test_a_descriptor_names_its_build_function(each: ControllerDescriptor[Any]) -> None:
    module, _, function = each.builder.partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert each.name.endswith("-controller") or each.name == "kube-scheduler"
    assert each.does[0].islower() or each.does[0].isupper()


def test_no_name_is_shared_by_two_controllers() -> None:
    names = [name for each in registry.ALL for name in (each.name, *each.aliases, *each.former_names)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "name",
    [
        "-podcertificaterequest-cleaner-controller",
        "-resourcepoolstatusrequest-controller",
        "-svm",
        "-storage-version-gc",
    ],
)
def test_every_name_and_alias_of_kube_controller_manager_is_known(name: str) -> None:
    assert [each.name for each in registry.enabled(["endpoints", name]).descriptors] == ["endpoints-controller"]
