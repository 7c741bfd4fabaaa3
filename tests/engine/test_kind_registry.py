"""Tests that the registry of kinds equals Kubernetes' discovery, and contains the data that strategies need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ctrlmgr.api.resource import EVENTS, LEASES, SERVICES, Resource
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.kind_registry import Group, Kinds
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds.builtin import builtin_kinds, declared
from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.schema import published_schema
from ctrlmgr.schema.codec import JSON

SHARED = Strategy()
KINDS = builtin_kinds(
    declarations=[
        Declaration(api_version, kind, strategy=SHARED)
        for api_version, kind in (("v1", "Service"), ("apps/v1", "Deployment"), ("v1", "ConfigMap"))
    ]
    + [replace(each, strategy=None) for each in declared() if each.stored_as is not None or each.feature_gate]
)


def find(group: str, version: str, plural: str) -> Kind:
    kind = KINDS.find(group, version, plural)
    assert kind is not None
    return kind


def test_a_kind_is_found() -> None:
    deployments = find("apps", "v1", "deployments")
    assert deployments.gvk == ("apps", "v1", "Deployment")
    assert deployments.resource == deployments.storage == Resource("apps", "deployments")
    assert (deployments.singular, deployments.list_name) == ("deployment", "DeploymentList")
    assert (deployments.short_names, deployments.categories) == (("deploy",), ("all",))
    assert deployments.namespaced
    assert deployments.verbs >= {"create", "deletecollection", "watch"}
    assert deployments.subresources.keys() == {"scale", "status"}
    assert deployments.subresources["scale"].kind == ("autoscaling", "v1", "Scale")
    assert deployments.subresources["status"].verbs == {"get", "patch", "update"}
    assert deployments.schema.definition == "io.k8s.api.apps.v1.Deployment"
    assert KINDS.by_gvk(deployments.gvk) is deployments


@pytest.mark.parametrize(
    ("plural", "part", "kind"),
    [
        ("pods", "binding", ("", "v1", "Binding")),
        ("pods", "eviction", ("policy", "v1", "Eviction")),
        ("pods", "ephemeralcontainers", ("", "v1", "Pod")),
        ("serviceaccounts", "token", ("authentication.k8s.io", "v1", "TokenRequest")),
        ("namespaces", "finalize", ("", "v1", "Namespace")),
    ],
)
def test_bodies_of_subresources_have_a_kind(plural: str, part: str, kind: tuple[str, str, str]) -> None:
    assert find("", "v1", plural).subresources[part].kind == kind


def test_every_discovered_resource_is_a_kind() -> None:
    listed = {
        (path, resource["name"])
        for path, answer in published_schema.discovery().items()
        for resource in answer.get("resources", ())
        if "/" not in resource["name"]
    }
    paths = {f"/api{'s' * bool(kind.gvk.group)}/{kind.gvk.api_version}" for kind in KINDS}
    assert paths == {path for path, _ in listed}
    assert len(list(KINDS)) == len(listed)
    assert all(kind.schema.kind == "object" for kind in KINDS)


def test_groups_have_discoverys_order() -> None:
    assert KINDS.groups[0] == Group("", ("v1",))
    assert Group("autoscaling", ("v2", "v1")) in KINDS.groups
    assert [group.name for group in KINDS.groups[1:]] == [
        group["name"] for group in published_schema.discovery()["/apis"]["groups"]
    ]


def test_a_status_subresource_has_a_separate_strategy() -> None:
    services, config_maps = find("", "v1", "services"), find("", "v1", "configmaps")
    assert services.strategy.has_status
    assert find("apps", "v1", "deployments").strategy.has_status
    assert not config_maps.strategy.has_status
    assert not SHARED.has_status
    assert not Strategy.has_status
    assert len({id(kind.strategy) for kind in KINDS}) == len(list(KINDS)) - 2


def test_kinds_stored_as_another() -> None:
    v1, v2 = (find("autoscaling", version, "horizontalpodautoscalers") for version in ("v1", "v2"))
    events, core_events = find("events.k8s.io", "v1", "events"), find("", "v1", "events")
    assert KINDS.stored(v2.resource) is v2
    assert v1.storage == v2.storage == v2.resource
    assert v1.strategy is v2.strategy
    assert KINDS.stored(EVENTS) is core_events
    assert events.storage == EVENTS
    assert events.strategy is core_events.strategy
    assert KINDS.stored(Resource("events.k8s.io", "events")) is None
    assert v1.to_storage
    assert events.from_storage
    assert (v2.to_storage, v2.from_storage, core_events.to_storage) == (None, None, None)


def test_stored_kinds() -> None:
    services = KINDS.stored(SERVICES)
    assert services is not None
    assert services.gvk == ("", "v1", "Service")
    leases = KINDS.stored(LEASES)
    assert leases is not None
    assert leases.gvk.api_version == "coordination.k8s.io/v1"
    assert KINDS.stored(Resource("authorization.k8s.io", "subjectaccessreviews")) is None


def test_unknown_kinds() -> None:
    assert KINDS.find("", "v2", "services") is None
    assert KINDS.by_gvk(GroupVersionKind("apps", "v1", "Service")) is None
    with pytest.raises(KeyError):
        KINDS.codec_for(GroupVersionKind("apps", "v1", "Service"))


@pytest.mark.parametrize(
    ("gvk", "body"),
    [
        (("", "v1", "DeleteOptions"), {"propagationPolicy": "Orphan", "preconditions": {"uid": "u"}}),
        (("apps", "v1", "DeleteOptions"), {"gracePeriodSeconds": 0}),
        (("meta.k8s.io", "v1", "DeleteOptions"), {"dryRun": ["All"]}),
        (("", "v1", "Binding"), {"metadata": {}, "target": {"name": "node"}}),
        (("policy", "v1", "Eviction"), {"metadata": {}, "deleteOptions": {"kind": "DeleteOptions"}}),
        (("policy", "v1beta1", "Eviction"), {"metadata": {}}),
        (("autoscaling", "v1", "Scale"), {"metadata": {}, "spec": {"replicas": 3}, "status": {"replicas": 0}}),
        (
            ("authorization.k8s.io", "v1", "SelfSubjectAccessReview"),
            {"metadata": {}, "spec": {}, "status": {"allowed": False}},
        ),
    ],
)
def test_bodies_without_storage_are_known(gvk: tuple[str, str, str], body: dict[str, Any]) -> None:
    name = GroupVersionKind(*gvk)
    codec = KINDS.codec_for(name)
    fields = {"kind": name.kind, "apiVersion": name.api_version, **body}
    assert codec.read(dict(fields)) == (fields, ())
    assert codec.decode(codec.encode(fields), JSON) == (fields, ())


def test_delete_options_are_accepted_in_any_group() -> None:
    codec = KINDS.codec_for(GroupVersionKind("", "v1", "DeleteOptions"))
    fields, _ = codec.decode(b'{"kind":"DeleteOptions","apiVersion":"policy/v1","orphanDependents":false}', JSON)
    assert fields == {"kind": "DeleteOptions", "apiVersion": "v1", "orphanDependents": False}


def test_kinds_can_be_added_later() -> None:
    kinds = Kinds(KINDS.definitions)
    services = find("", "v1", "services")
    kinds.add(services)
    assert list(kinds) == [services]
    assert kinds.find("", "v1", "services") is kinds.stored(SERVICES) is services
