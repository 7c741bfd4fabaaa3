"""Tests of plugins that are off by default, each with a single write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.plugins.optional.always import AlwaysDeny
from ctrlmgr.admission.plugins.optional.always_pull_images import AlwaysPullImages
from ctrlmgr.admission.plugins.optional.deny_service_external_ips import DenyServiceExternalIPs
from ctrlmgr.admission.plugins.optional.event_rate_limit import EventRateLimit
from ctrlmgr.admission.plugins.optional.namespace_existence import NamespaceAutoProvision, NamespaceExists
from ctrlmgr.admission.plugins.optional.owner_references import OwnerReferencesPermissionEnforcement
from ctrlmgr.admission.plugins.optional.pod_node_selector import PodNodeSelector
from ctrlmgr.admission.plugins.optional.pod_placement_plugins import (
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
)
from ctrlmgr.admission.plugins.optional.pod_toleration_restriction import PodTolerationRestriction
from ctrlmgr.admission.plugins.pod_resize_validator import PodResizeValidator
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes as Question
from ctrlmgr.authorization.authorizer import ALLOWED, Immediate, Verdict
from ctrlmgr.authorization.authorizer import Decision as Decided
from ctrlmgr.errors import ApiError, Forbidden, NotFound, SettingsError, TooManyRequests, UnknownError
from ctrlmgr.settings.configuration_files import Document, read_document
from ctrlmgr.testing import FakeClock
from tests.admission.stage import Write
from tests.engine.stage import Stage
from tests.kinds.stage import KINDS


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def namespace(**annotations: str) -> dict[str, Any]:
    marks = {f"scheduler.alpha.kubernetes.io/{name}": text for name, text in annotations.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "annotations": marks}}


def document(folder: Path, text: str) -> Document:
    file = folder / "plugin.yaml"
    file.write_text(text, encoding="utf-8")
    return read_document(file)


def refusal(plugin: Plugin, write: Write) -> ApiError:
    with pytest.raises(ApiError) as refused:
        write.admit(plugin)
    return refused.value


def test_always_deny() -> None:
    assert isinstance(refusal(AlwaysDeny(), Write("v1/pods", pod())), Forbidden)


def test_always_pull_images_sets_the_pull_policy() -> None:
    volumes = [{"name": "v", "image": {"reference": "r", "pullPolicy": "Never"}}]
    made = Write("v1/pods", pod(volumes=volumes)).admit(AlwaysPullImages())["spec"]
    assert made["containers"][0]["imagePullPolicy"] == "Always"
    assert made["volumes"][0]["image"]["pullPolicy"] == "Always"


def test_an_update_without_a_new_image_keeps_its_pull_policy() -> None:
    made = Write("v1/pods", pod(), pod()).admit(AlwaysPullImages())["spec"]
    assert "imagePullPolicy" not in made["containers"][0]


@pytest.mark.parametrize(
    ("new", "old", "is_refused"), [(["1"], None, True), (["1"], ["1", "2"], False), ([], None, False)]
)
def test_services_cannot_add_external_addresses(new: list[str], old: list[str] | None, is_refused: bool) -> None:
    before = None if old is None else {"spec": {"externalIPs": old}}
    write = Write("v1/services", {"spec": {"externalIPs": new}}, before)
    if is_refused:
        assert "Use of external IPs is denied by admission control" in str(refusal(DenyServiceExternalIPs(), write))
    else:
        write.admit(DenyServiceExternalIPs())


def test_a_missing_namespace_is_refused() -> None:
    assert isinstance(refusal(NamespaceExists(), Write("v1/pods", pod())), NotFound)
    Write("v1/pods", pod(), None, namespace()).admit(NamespaceExists())


def test_a_missing_namespace_is_created() -> None:
    stage = Stage()
    plugin = NamespaceAutoProvision(stage.kinds)
    stage.engine.admission.plugins = (plugin, *stage.engine.admission.plugins)  # type: ignore[attr-defined]  # a chain
    stage.engine.admission._routes.clear()  # type: ignore[attr-defined]  # the same
    made = stage.send("POST", "/api/v1/namespaces/new/configmaps", {"metadata": {"name": "a"}})
    assert made.code == 201, made.body
    found = stage.send("GET", "/api/v1/namespaces/new").body
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": "new"}
    assert (found["spec"], found["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})


def test_pod_anti_affinity_is_limited_to_the_hostname_topology() -> None:
    terms = [{"topologyKey": "zone"}]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    said = str(refusal(LimitPodHardAntiAffinityTopology(), Write("v1/pods", pod(affinity=affinity))))
    assert "has TopologyKey zone but only key kubernetes.io/hostname is allowed" in said


def test_extended_resource_request_adds_a_toleration() -> None:
    containers = [{"name": "c", "resources": {"requests": {"example.com/gpu": "1", "cpu": "1"}}}]
    made = Write("v1/pods", pod(containers=containers)).admit(ExtendedResourceToleration())
    wanted = [{"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert made["spec"]["tolerations"] == wanted


SELECTORS = "podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: env=dev\n  default: env=prod,disk=ssd\n"


def test_the_namespace_selects_the_nodes_of_its_pods(tmp_path: Path) -> None:
    plugin = PodNodeSelector(document(tmp_path, SELECTORS))
    write = Write("v1/pods", pod(nodeSelector={"disk": "ssd"}), None, namespace(**{"node-selector": "env=prod"}))
    assert write.admit(plugin)["spec"]["nodeSelector"] == {"env": "prod", "disk": "ssd"}


@pytest.mark.parametrize(
    ("selector", "annotation", "problem"),
    [
        ({"env": "test"}, "env=prod", "pod node label selector conflicts with its namespace node label selector"),
        ({"a": "b"}, "env=prod", "pod node label selector labels conflict with its namespace whitelist"),
        ({}, None, "pod node label selector labels conflict with its namespace whitelist"),
    ],
)
def test_a_pod_cannot_select_nodes_outside_its_namespaces_selector(
    tmp_path: Path, selector: dict[str, str], annotation: str | None, problem: str
) -> None:
    plugin = PodNodeSelector(document(tmp_path, SELECTORS))
    marks = {} if annotation is None else {"node-selector": annotation}
    write = Write("v1/pods", pod(nodeSelector=selector), None, namespace(**marks))
    assert problem in str(refusal(plugin, write))


def test_an_invalid_selector_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"plugin.yaml:2: invalid selector: \[env\]"):
        PodNodeSelector(document(tmp_path, "podNodeSelectorPluginConfig:\n  a: env\n"))


TOLERATIONS = """\
apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
kind: Configuration
default: [{key: a, operator: Exists}]
whitelist: [{key: a, operator: Exists}, {key: b, operator: Exists}]
"""


def test_pods_get_the_tolerations_of_their_namespace(tmp_path: Path) -> None:
    plugin = PodTolerationRestriction(document(tmp_path, TOLERATIONS))
    made = Write("v1/pods", pod(), None, namespace()).admit(plugin)["spec"]
    assert made["tolerations"] == [{"key": "a", "operator": "Exists"}]
    own = namespace(defaultTolerations='[{"key": "b", "operator": "Exists"}]')
    made = Write("v1/pods", pod(), None, own).admit(plugin)["spec"]
    assert made["tolerations"] == [{"key": "b", "operator": "Exists"}]


def test_a_pod_cannot_tolerate_more_than_its_namespace_allows(tmp_path: Path) -> None:
    plugin = PodTolerationRestriction(document(tmp_path, TOLERATIONS))
    write = Write("v1/pods", pod(tolerations=[{"key": "c", "operator": "Exists"}]), None, namespace())
    assert isinstance(refusal(plugin, write), UnknownError)


LIMITS = """\
apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits:
- {type: Namespace, qps: 1, burst: 2}
"""


def test_events_above_the_rate_limit_are_refused(tmp_path: Path) -> None:
    clock = FakeClock()
    plugin = EventRateLimit(document(tmp_path, LIMITS), clock)
    event = {"involvedObject": {"kind": "Pod"}, "metadata": {"name": "e"}}
    for _ in range(2):
        Write("v1/events", event).admit(plugin)
    refused = refusal(plugin, Write("v1/events", event))
    assert isinstance(refused, TooManyRequests)
    assert str(refused) == "limit reached on type Namespace for key default"
    Write("v1/events", event, dry_run=True).admit(plugin)
    clock.step(1.0)
    Write("v1/events", event).admit(plugin)


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ("limits: []", ":3: there must be at least one limit"),
        ("limits:\n- {type: Odd, qps: 1, burst: 1}", ":4: type must be one of"),
        ("limits:\n- {type: User,\n   qps: 0, burst: 1}", ":5: qps must be at least 1"),
    ],
)
def test_invalid_limits_are_refused_with_their_line(tmp_path: Path, limits: str, problem: str) -> None:
    text = f"apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n{limits}\n"
    with pytest.raises(SettingsError, match=problem):
        EventRateLimit(document(tmp_path, text), FakeClock())


class DeniesVerbs(Immediate):
    """An authorizer that allows all verbs except the given ones."""

    def __init__(self, *verbs: str) -> None:
        self._verbs = verbs

    def authorize(self, user: User, attributes: Question) -> Verdict:
        return Verdict(Decided.NO_OPINION, "no rule") if attributes.verb in self._verbs else ALLOWED


def owned(version: str = "v1", kind: str = "Pod") -> dict[str, Any]:
    owner = {"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "blockOwnerDeletion": True}
    return {"metadata": {"name": "c", "ownerReferences": [owner]}}


@pytest.mark.parametrize(
    ("missing", "fields", "problem"),
    [
        (("delete",), owned(), "cannot set an ownerRef on a resource you can't delete: no rule, <nil>"),
        (("update",), owned(), "refers to a resource you can't set finalizers on: no rule, <nil>"),
        ((), owned("v9", "Odd"), "cannot find RESTMapping for APIVersion v9 Kind Odd"),
    ],
)
def test_setting_an_owner_requires_the_right_to_it(
    missing: tuple[str, ...], fields: dict[str, Any], problem: str
) -> None:
    plugin = OwnerReferencesPermissionEnforcement(KINDS, DeniesVerbs(*missing))
    assert problem in str(refusal(plugin, Write("v1/configmaps", fields)))
    Write("v1/configmaps", fields, fields).admit(plugin)


@pytest.mark.parametrize(
    ("labels", "allocatable", "problem"),
    [
        ({"kubernetes.io/os": "windows"}, {}, 'only supported on linux nodes, node "n" is "windows"'),
        ({}, {"cpu": "2", "memory": "1Gi"}, "resources: cpu, requested: 3000, allocatable: 2000"),
        ({}, {"cpu": "2"}, "cpu, requested: 3000, allocatable: 2000; memory, requested: 1024, allocatable: 0"),
    ],
)
def test_a_pod_cannot_be_resized_beyond_its_node(
    labels: dict[str, str], allocatable: dict[str, str], problem: str
) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": labels},
        "status": {"allocatable": allocatable},
    }
    resources = {"requests": {"cpu": "3", "memory": "1Ki"}}
    fields = pod(nodeName="n", containers=[{"name": "c", "resources": resources}])
    unchanged = Write("v1/pods", fields, pod(), node, subresource="resize")
    unchanged.admit(PodResizeValidator())
    fields["metadata"]["generation"] = 2
    assert problem in str(refusal(PodResizeValidator(), Write("v1/pods", fields, pod(), node, subresource="resize")))


def test_pod_level_resources_are_compared_with_the_node() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2"}}}
    fields = pod(nodeName="n", resources={"requests": {"cpu": "3"}}, containers=[{"name": "c"}])
    fields["metadata"]["generation"] = 2
    said = str(refusal(PodResizeValidator(), Write("v1/pods", fields, pod(), node, subresource="resize")))
    assert "cpu, requested: 3000, allocatable: 2000" in said
