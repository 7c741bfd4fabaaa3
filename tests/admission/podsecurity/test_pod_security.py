"""Tests of PodSecurity: the effects of a namespace's labels on pods and on pod templates, and of changes of these
labels.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.admission.plugins.pod_security import PodSecurity
from ctrlmgr.admission.podsecurity.levels import LevelVersion, Policy
from ctrlmgr.admission.podsecurity.pod_security_configuration import PodSecurityConfiguration
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import Forbidden, Invalid
from tests.admission.stage import Write

PREFIX = "pod-security.kubernetes.io/"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
PRIVILEGED = {"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]}
FOUND = 'privileged (container "c" must not set securityContext.privileged=true)'


def namespace(**labels: str) -> dict[str, Any]:
    marks = {PREFIX + name.replace("_", "-"): value for name, value in labels.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": marks}}


def pod(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **metadata}, "spec": spec or PRIVILEGED}


def audited(write: Write) -> dict[str, str]:
    return {key.removeprefix(PREFIX): value for key, value in write.attributes.annotations.items()}


def test_a_violating_pod_is_refused_without_a_warning() -> None:
    write = Write("v1/pods", pod(), None, namespace(enforce="baseline", warn="baseline", audit="baseline"))
    with pytest.raises(Forbidden) as refused:
        write.admit(PodSecurity())
    assert str(refused.value) == f'pods "x" is forbidden: violates PodSecurity "baseline:latest": {FOUND}'
    assert write.attributes.warnings == []
    violations = f'would violate PodSecurity "baseline:latest": {FOUND}'
    assert audited(write) == {"enforce-policy": "baseline:latest", "audit-violations": violations}


def test_a_warning_names_the_requested_version() -> None:
    write = Write("v1/pods", pod(), None, namespace(warn="baseline", warn_version="v1.20"))
    write.admit(PodSecurity())
    assert write.attributes.warnings == [f'would violate PodSecurity "baseline:v1.20": {FOUND}']
    assert audited(write) == {"enforce-policy": "privileged:latest"}


def test_warn_defaults_to_the_level_of_enforce() -> None:
    """If a namespace has no label `warn`, the level of `enforce` also applies to warnings, so pod templates whose pods
    would be refused cause warnings.
    """
    template = {"template": {"spec": PRIVILEGED}, "selector": {}}
    fields = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": template}
    write = Write("apps/v1/deployments", fields, None, namespace(enforce="baseline"))
    write.admit(PodSecurity())
    assert write.attributes.warnings == [f'would violate PodSecurity "baseline:latest": {FOUND}']
    assert audited(write) == {}


@pytest.mark.parametrize(
    ("old", "new", "is_looked_at"),
    [
        (pod(), pod(labels={"a": "b"}), False),
        (pod(), pod({**PRIVILEGED, "activeDeadlineSeconds": 5}), False),
        (pod(), pod({"containers": [{**PRIVILEGED["containers"][0], "image": "j"}]}), True),
        (pod(), pod({**PRIVILEGED, "ephemeralContainers": [{"name": "e", "image": "i"}]}), True),
        (pod(), pod(annotations={SECCOMP: "unconfined"}), True),
        (pod(annotations={SECCOMP: "unconfined"}), pod(annotations={SECCOMP: "unconfined", "a": "b"}), False),
    ],
)
def test_an_update_is_checked_only_if_a_checked_field_changes(
    old: dict[str, Any], new: dict[str, Any], is_looked_at: bool
) -> None:
    write = Write("v1/pods", new, old, namespace(enforce="baseline"))
    if is_looked_at:
        with pytest.raises(Forbidden):
            write.admit(PodSecurity())
    else:
        write.admit(PodSecurity())


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        (PodSecurityConfiguration(namespaces=frozenset({"default"})), "namespace"),
        (PodSecurityConfiguration(usernames=frozenset({"alice"})), "user"),
        (PodSecurityConfiguration(runtime_classes=frozenset({"safe"})), "runtimeClass"),
    ],
)
def test_exempt_requests_are_allowed(configuration: PodSecurityConfiguration, reason: str) -> None:
    fields = pod({**PRIVILEGED, "runtimeClassName": "safe"})
    write = Write("v1/pods", fields, None, namespace(enforce="restricted"), requester=Requester("alice"))
    write.admit(PodSecurity(configuration))
    assert audited(write) == {"exempt": reason}


def test_a_namespace_without_labels_gets_the_default_level() -> None:
    configuration = PodSecurityConfiguration(Policy(enforce=LevelVersion("baseline", 30)))
    with pytest.raises(Forbidden, match=r'violates PodSecurity "baseline:v1\.30"'):
        Write("v1/pods", pod(), None, namespace()).admit(PodSecurity(configuration))


def test_invalid_labels_are_refused_unless_they_existed_before() -> None:
    wrong = namespace(enforce="odd", warn_version="1.2")
    said = f'metadata.labels[{PREFIX}enforce]: Invalid value: "odd": must be one of privileged, baseline, restricted'
    with pytest.raises(Invalid, match=said.replace("[", r"\[").replace(".", r"\.")):
        Write("v1/namespaces", wrong).admit(PodSecurity())
    with pytest.raises(Invalid):
        Write("v1/namespaces", wrong, namespace()).admit(PodSecurity())
    Write("v1/namespaces", wrong, wrong).admit(PodSecurity())
    with pytest.raises(Forbidden, match="restricted:latest"):
        Write("v1/pods", pod(), None, wrong).admit(PodSecurity())


def owned(name: str, uid: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    owners = [{"uid": uid, "controller": True, "kind": "ReplicaSet", "name": "r", "apiVersion": "apps/v1"}]
    made = pod(spec, ownerReferences=owners)
    return {**made, "metadata": {**made["metadata"], "name": name, "namespace": "default"}}


@pytest.mark.parametrize(
    ("old", "new", "warnings"),
    [
        (
            {},
            {"enforce": "baseline"},
            [
                'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
                "a (and 2 other pods): privileged",
                "d: host namespaces",
            ],
        ),
        ({"enforce": "baseline"}, {"enforce": "baseline"}, []),
        ({"enforce": "restricted"}, {"enforce": "baseline"}, []),
        ({"enforce": "baseline"}, {"enforce": "privileged"}, []),
        (
            {"enforce": "baseline"},
            {"enforce": "baseline", "enforce_version": "v1.20"},
            [
                'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:v1.20"',
                "a (and 2 other pods): privileged",
                "d: host namespaces",
            ],
        ),
    ],
)
def test_stricter_labels_warn_about_existing_pods(
    old: dict[str, str], new: dict[str, str], warnings: list[str]
) -> None:
    fine = {"containers": [{"name": "c", "image": "i"}]}
    pods = [owned(name, uid) for name, uid in (("c", "1"), ("b", "1"), ("a", "2"))]
    others = (owned("d", "3", {**fine, "hostPID": True}), owned("e", "4", fine))
    write = Write("v1/namespaces", namespace(**new), namespace(**old), *pods, *others)
    write.admit(PodSecurity())
    assert write.attributes.warnings == warnings
