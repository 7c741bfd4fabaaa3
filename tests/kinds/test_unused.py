"""Tests that the kinds that have no effect are declared as unused, and that no other kinds are."""

from __future__ import annotations

from pathlib import Path

import pytest

import ctrlmgr
from ctrlmgr.controllers import registry
from ctrlmgr.engine.kind import Kind
from ctrlmgr.kinds.builtin import builtin_kinds, declared

PACKAGE = Path(ctrlmgr.__file__).parent
USED_BY = {
    "bindings": "engine/write_engine.py",
    "componentstatuses": "kinds/core/printers.py",  # a page about the control plane itself
    "events": "controllers/events/expiry.py",
    "limitranges": "admission/plugins/limit_ranger.py",
    "podtemplates": "admission/plugins/pod_security.py",
    "mutatingadmissionpolicies.admissionregistration.k8s.io": "admission/plugin_registry.py",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": "admission/plugin_registry.py",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": "admission/plugin_registry.py",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": "admission/plugin_registry.py",
    "validatingwebhookconfigurations.admissionregistration.k8s.io": "admission/plugin_registry.py",
    "customresourcedefinitions.apiextensions.k8s.io": "controllers/custom_kinds.py",
    "events.events.k8s.io": "admission/plugins/optional/event_rate_limit.py",
    "ingressclasses.networking.k8s.io": "admission/plugins/default_ingress_class.py",
    "runtimeclasses.node.k8s.io": "admission/plugins/pod_runtime_class.py",
    "clusterrolebindings.rbac.authorization.k8s.io": "authorization/rbac/rbac_authorizer.py",
    "rolebindings.rbac.authorization.k8s.io": "authorization/rbac/rbac_authorizer.py",
    "roles.rbac.authorization.k8s.io": "authorization/rbac/rbac_authorizer.py",
    "flowschemas.flowcontrol.apiserver.k8s.io": "server/fairness",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": "server/fairness",
    "priorityclasses.scheduling.k8s.io": "admission/plugins/pod_priority.py",
}
"""The components, other than controllers, that use kinds which no controller watches."""

WATCHED = {resource for each in registry.ALL for resource in (*each.watches, *each.owns)}
UNUSED = {(each.api_version, each.kind) for each in declared() if each.unused}


@pytest.mark.parametrize("kind", [*builtin_kinds()], ids=lambda kind: f"{kind.gvk.kind}.{kind.gvk.api_version}")
def test_unused_kinds_are_declared(kind: Kind) -> None:
    is_answered_only = "get" not in kind.verbs  # reviews
    is_used = is_answered_only or kind.resource in WATCHED or str(kind.resource) in USED_BY
    assert is_used is not ((kind.gvk.api_version, kind.gvk.kind) in UNUSED)


@pytest.mark.parametrize("module", sorted({*USED_BY.values()}))
def test_users_of_a_kind_exist(module: str) -> None:
    assert (PACKAGE / module).exists()
