"""Tests of the Pod Security Standards: the violations that each rule of each version finds, with
Kubernetes' messages.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.admission.podsecurity.findings import Pod
from ctrlmgr.admission.podsecurity.levels import LATEST, LevelVersion
from ctrlmgr.admission.podsecurity.standards import (
    BASELINE_STANDARDS,
    RESTRICTED_STANDARDS,
    details,
    evaluate,
)

SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/a"
CONFINED: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""A container's securityContext that the level `restricted` allows."""


def container(name: str = "a", **security: Any) -> dict[str, Any]:
    return {"name": name, "securityContext": security} if security else {"name": name}


def found(level: str, spec: dict[str, Any], version: int = LATEST, annotations: dict[str, str] | None = None) -> str:
    return details(
        evaluate(LevelVersion(level, version), Pod(annotations or {}, {"containers": [container()], **spec}))
    )


def secured(**security: Any) -> dict[str, Any]:
    """Return the spec of a pod with this securityContext."""
    return {"securityContext": security}


def of(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"containers": list(containers), **spec}


PROBE = {"livenessProbe": {"httpGet": {"host": "h"}}, "lifecycle": {"preStop": {"tcpSocket": {"host": "g"}}}}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            secured(appArmorProfile={"type": "Unconfined"}),
            'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
        ),
        (
            of(container(capabilities={"add": ["CHOWN", "NET_RAW"]}), container("b", capabilities={"add": ["BPF"]})),
            'non-default capabilities (containers "a", "b" must not include "BPF", "NET_RAW" in '
            "securityContext.capabilities.add)",
        ),
        ({"hostNetwork": True, "hostIPC": True}, "host namespaces (hostNetwork=true, hostIPC=true)"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, 'hostPath volumes (volume "v")'),
        (
            of({"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 0}]}, {"name": "b", "ports": [{"hostPort": 9}]}),
            'hostPort (containers "a", "b" use hostPorts 80, 9)',
        ),
        (of(container(privileged=True)), 'privileged (container "a" must not set securityContext.privileged=true)'),
        (
            {"initContainers": [container("i", procMount="Unmasked")]},
            'procMount (container "i" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            {**of(container(seLinuxOptions={"user": "u"})), **secured(seLinuxOptions={"type": "x", "role": "r"})},
            'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: type "x"; '
            "user may not be set; role may not be set)",
        ),
        (
            {**of(container(seccompProfile={"type": "Unconfined"})), **secured(seccompProfile={"type": "Unconfined"})},
            'seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        (secured(sysctls=[{"name": "a.b"}, {"name": "kernel.shm_rmid_forced"}]), "forbidden sysctls (a.b)"),
        (
            of(container(windowsOptions={"hostProcess": True})),
            'hostProcess (container "a" must not set securityContext.windowsOptions.hostProcess=true)',
        ),
        (
            of({"name": "a", **PROBE}),
            'probe or lifecycle host (container "a" uses probe or lifecycle hosts "g", "h")',
        ),
        ({"ephemeralContainers": [container("e", privileged=True)]},
            'privileged (container "e" must not set securityContext.privileged=true)'),
    ],
)  # fmt: skip
def test_baseline_refuses_violations(spec: dict[str, Any], said: str) -> None:
    assert found("baseline", spec) == said
    assert found("privileged", spec) == ""


@pytest.mark.parametrize(
    ("changed", "spec", "said"),
    [
        (
            {"allowPrivilegeEscalation": None},
            {},
            'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)',
        ),
        (
            {"capabilities": {"add": ["NET_BIND_SERVICE", "CHOWN"]}},
            {},
            'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; '
            'container "a" must not include "CHOWN" in securityContext.capabilities.add)',
        ),
        (
            {},
            {"volumes": [{"name": "v", "nfs": {}}, {"name": "w", "hostPath": {}}, {"name": "x", "image": {}}]},
            'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")',
        ),
        (
            {"runAsNonRoot": None},
            {},
            'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)',
        ),
        (
            {"runAsNonRoot": False},
            secured(runAsNonRoot=False),
            'runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false)',
        ),
        ({"runAsUser": 0}, {}, 'runAsUser=0 (container "a" must not set runAsUser=0)'),
        (
            {"seccompProfile": None},
            {},
            'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
            '"Localhost")',
        ),
    ],
)
def test_restricted_refuses_further_violations(changed: dict[str, Any], spec: dict[str, Any], said: str) -> None:
    pod = {**of(container(**{**CONFINED, **changed})), **spec}
    assert found("restricted", pod) == said
    assert found("restricted", of(container(**CONFINED))) == ""


def test_the_pods_security_context_applies_to_its_containers() -> None:
    rest = container(allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]})
    own = secured(runAsNonRoot=True, seccompProfile={"type": "Localhost"})
    assert found("restricted", {**of(rest), **own}) == ""


@pytest.mark.parametrize(
    ("level", "rule", "spec", "annotations", "first", "last"),
    [
        ("baseline", "seccompProfile", {}, {SECCOMP: "unconfined"}, 0, 18),
        ("baseline", "seccompProfile", secured(seccompProfile={"type": "Unconfined"}), {}, 19, LATEST),
        ("baseline", "forbidden", secured(sysctls=[{"name": "net.ipv4.ip_local_reserved_ports"}]), {}, 0, 26),
        ("baseline", "forbidden", secured(sysctls=[{"name": "net.ipv4.tcp_keepalive_time"}]), {}, 0, 28),
        ("baseline", "forbidden", secured(sysctls=[{"name": "net.ipv4.tcp_rmem"}]), {}, 0, 31),
        ("baseline", "seLinuxOptions", secured(seLinuxOptions={"type": "container_engine_t"}), {}, 0, 30),
        ("baseline", "probe", of({"name": "a", **PROBE}), {}, 34, LATEST),
        ("baseline", "procMount", of(container(procMount="Unmasked"), hostUsers=False), {}, 0, 34),
        ("baseline", "forbidden AppArmor", {}, {APPARMOR: "unconfined"}, 0, LATEST),
        ("restricted", "procMount", of(container(procMount="Unmasked"), hostUsers=False), {}, 0, LATEST),
        ("restricted", "allowPrivilegeEscalation", {}, {}, 8, LATEST),
        ("restricted", "allowPrivilegeEscalation", {"os": {"name": "windows"}}, {}, 8, 24),
        ("restricted", "unrestricted capabilities", {}, {}, 22, LATEST),
        ("restricted", "unrestricted capabilities", {"os": {"name": "windows"}}, {}, 22, 24),
        ("restricted", "seccompProfile", {}, {}, 19, LATEST),
        ("restricted", "seccompProfile", {"os": {"name": "windows"}}, {}, 19, 24),
        ("restricted", "runAsUser", secured(runAsUser=0), {}, 23, LATEST),
        ("restricted", "runAsUser", {**secured(runAsUser=0), "hostUsers": False}, {}, 23, 34),
        ("restricted", "runAsNonRoot", {}, {}, 0, LATEST),
        ("restricted", "runAsNonRoot", {"hostUsers": False}, {}, 0, 34),
        ("restricted", "restricted volume", {"volumes": [{"name": "v", "hostPath": {}}]}, {}, 0, LATEST),
        ("restricted", "hostPath volumes", {"volumes": [{"name": "v", "hostPath": {}}]}, {}, 1, 0),
        ("restricted", "non-default", of(container(capabilities={"add": ["NET_RAW"]})), {}, 0, 21),
    ],
)
def test_rules_depend_on_the_version(
    level: str, rule: str, spec: dict[str, Any], annotations: dict[str, str], first: int, last: int
) -> None:
    for version in (*range(40), LATEST):
        said = found(level, spec, version, annotations)
        assert (f", {rule}" in f", {said}") is (first <= version <= last), (version, said)


def test_all_rules_of_kubernetes_exist() -> None:
    assert len(BASELINE_STANDARDS) + len(RESTRICTED_STANDARDS) == 19
    assert list(BASELINE_STANDARDS) == sorted(BASELINE_STANDARDS)
    assert list(RESTRICTED_STANDARDS) == sorted(RESTRICTED_STANDARDS)
