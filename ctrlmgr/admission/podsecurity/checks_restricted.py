"""The rules that the level `restricted` adds: each function returns a pod's violation of one rule, or None.

Rules and wording come from `k8s.io/pod-security-admission/policy/check_*.go`.
"""

from __future__ import annotations

from ctrlmgr.admission.podsecurity.checks_baseline import bad_seccomp, seccomp_profile
from ctrlmgr.admission.podsecurity.findings import (
    Fields,
    Finding,
    Pod,
    containers,
    plural,
    quoted,
    security_of,
    setters,
)

_VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
_RESTRICTED_VOLUMES = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
]


def allow_privilege_escalation(pod: Pod) -> Finding | None:
    """Require that every container forbids privilege escalation."""
    names = [each["name"] for each in pod.containers if security_of(each).get("allowPrivilegeEscalation") is not False]
    if not names:
        return None
    detail = f"{containers(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Finding("allowPrivilegeEscalation != false", detail)


def capabilities(pod: Pod) -> Finding | None:
    """Require that every container drops all capabilities and adds only NET_BIND_SERVICE."""
    keeping: list[str] = []
    adding: list[str] = []
    added: set[str] = set()
    for container in pod.containers:
        given = security_of(container).get("capabilities") or {}
        if "ALL" not in (given.get("drop") or ()):
            keeping.append(container["name"])
        more = set(given.get("add") or ()) - {"NET_BIND_SERVICE"}
        if more:
            adding.append(container["name"])
            added |= more
    details = []
    if keeping:
        details.append(f'{containers(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        forbidden = quoted(sorted(added))
        details.append(f"{containers(adding)} must not include {forbidden} in securityContext.capabilities.add")
    return Finding("unrestricted capabilities", "; ".join(details)) if details else None


def restricted_volumes(pod: Pod) -> Finding | None:
    """Require that all volumes have types that need no rights on the node."""
    bad = [each for each in pod.spec.get("volumes") or () if not any(each.get(kind) is not None for kind in _VOLUMES)]
    if not bad:
        return None
    kinds = sorted({_kind_of(each) for each in bad})
    which = f"{plural(len(bad), 'volume', 'volumes')} {quoted(each['name'] for each in bad)}"
    what = plural(len(kinds), "restricted volume type", "restricted volume types")
    return Finding("restricted volume types", f"{which} {plural(len(bad), 'uses', 'use')} {what} {quoted(kinds)}")


def _kind_of(volume: Fields) -> str:
    return next((kind for kind in _RESTRICTED_VOLUMES if volume.get(kind) is not None), "unknown")


def run_as_non_root(pod: Pod) -> Finding | None:
    """Require that every container has runAsNonRoot, either in the container or in the pod."""
    own = pod.security.get("runAsNonRoot")
    by_container = {each["name"]: security_of(each).get("runAsNonRoot") for each in pod.containers}
    root = [each["name"] for each in pod.containers if by_container[each["name"]] is False]
    who = setters(own is False, root)
    if who:
        detail = f"{' and '.join(who)} must not set securityContext.runAsNonRoot=false"
        return Finding("runAsNonRoot != true", detail)
    silent = [each["name"] for each in pod.containers if by_container[each["name"]] is None]
    if own or not silent:
        return None
    return Finding("runAsNonRoot != true", f"pod or {containers(silent)} must set securityContext.runAsNonRoot=true")


def run_as_user(pod: Pod) -> Finding | None:
    """Require that no container runs as user 0."""
    root = [each["name"] for each in pod.containers if security_of(each).get("runAsUser") == 0]
    who = setters(pod.security.get("runAsUser") == 0, root)
    return Finding("runAsUser=0", f"{' and '.join(who)} must not set runAsUser=0") if who else None


def required_seccomp_profile(pod: Pod) -> Finding | None:
    """Require that every container has a seccomp profile, either in the container or in the pod."""
    wrong = seccomp_profile(pod)
    if wrong is not None:
        return wrong
    if pod.security.get("seccompProfile") is not None and bad_seccomp(pod.spec) is None:
        return None
    silent = [each["name"] for each in pod.containers if security_of(each).get("seccompProfile") is None]
    if not silent:
        return None
    detail = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Finding("seccompProfile", f"pod or {containers(silent)} {detail}")
