"""Tests of the hooks whose work components with other names do."""

from __future__ import annotations

import pytest

from ctrlmgr.manager import Hooks
from ctrlmgr.serve.component_hooks import add_component_hooks

CASES = [
    ("crd-informer-synced", "informers"),
    ("start-system-namespaces-controller", "bootstrap"),
    ("apiservice-openapiv3-controller", "server"),
    ("priority-and-fairness-filter", "server"),
]


@pytest.mark.parametrize(("name", "component"), CASES)
def test_a_hook_has_finished_when_its_component_has(name: str, component: str) -> None:
    finished: set[str] = set()
    hooks = Hooks()
    add_component_hooks(
        hooks,
        informers=lambda: "informers" in finished,
        bootstrap=lambda: "bootstrap" in finished,
        server=lambda: "server" in finished,
        is_fair=True,
    )
    problem = dict(hooks.checks)[f"poststarthook/{name}"]
    finished |= {"informers", "bootstrap", "server"} - {component}
    assert problem() == "not finished"
    finished.add(component)
    assert problem() is None


@pytest.mark.parametrize(
    ("is_fair", "name"), [(True, "priority-and-fairness-config-consumer"), (False, "max-in-flight-filter")]
)
def test_the_filter_of_concurrent_requests_is_shown(is_fair: bool, name: str) -> None:
    hooks = Hooks()
    add_component_hooks(hooks, informers=bool, bootstrap=bool, server=bool, is_fair=is_fair)
    names = [each.removeprefix("poststarthook/") for each, _ in hooks.checks]
    both = {"priority-and-fairness-config-consumer", "max-in-flight-filter"}
    assert both & {*names} == {name}
