"""Validates pod specs, by the rules for pods and the rules for pod templates.

Guarantees: the validation of a typical pod with one container and no special fields needs only a few dozen dict
look-ups. Each absent field of a pod spec needs only one look-up.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidatePodSpec`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import validate_legacy_ip
from ctrlmgr.engine.validation.label_validation import validate_labels
from ctrlmgr.engine.validation.object_meta import validate_annotations
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.core.pod.annotations import MIRROR, validate_annotations_agree, validate_pod_annotations
from ctrlmgr.kinds.core.pod.containers import PodParts, validate_containers, validate_padding
from ctrlmgr.kinds.core.pod.env_vars import validate_file_volumes
from ctrlmgr.kinds.core.pod.pod_resources import validate_container_resources, validate_pod_resources
from ctrlmgr.kinds.core.pod.scheduling import (
    validate_affinity,
    validate_gates,
    validate_spreading,
    validate_tolerations,
)
from ctrlmgr.kinds.core.pod.security import validate_host_users, validate_pod_security
from ctrlmgr.kinds.core.pod.volumes.validation import validate_volumes
from ctrlmgr.kinds.core.pod.windows import validate_host_process, validate_system
from ctrlmgr.kinds.spec_difference import shown

SPEC = Path("spec")
ANNOTATIONS = Path("metadata.annotations")
LONGEST = 2**31 - 1
"""The maximum value of activeDeadlineSeconds."""

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_ABSENT: tuple[Any, ...] = (None, "", [])
_LONGEST_HOSTNAME = 64
_TWO_CLAIMS = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
_NO_CLAIMS = forbidden("[]", "static pods do not support resource claims")
_NAMESERVERS, _SEARCHES, _SEARCH_LENGTH = 3, 32, 2048


def validate_pod(pod: Mapping[str, Any]) -> list[FieldError]:
    """Validate the spec and the special annotations of a pod (`validatePodMetadataAndSpec`), but not its metadata."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    errors: list[FieldError] = []
    if annotations:
        errors += validate_pod_annotations(annotations, spec, ANNOTATIONS)
    errors += validate_pod_spec(spec, SPEC, pod_name=metadata.get("name") or "", is_mirror=MIRROR in annotations)
    if not spec.get("serviceAccountName"):
        errors += _tokens_without_account(spec)
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            errors += validate_padding(container, SPEC.child(field).at(index))
    return errors


def validate_new_pod(pod: Mapping[str, Any]) -> list[FieldError]:
    """Validate a new pod according to the rules that apply only to new pods."""
    spec = pod.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("ephemeralContainers"):
        errors.append(forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden(SPEC.child("nodeName"), detail))
    if annotations := (pod.get("metadata") or {}).get("annotations"):
        errors += validate_annotations_agree(annotations, spec, SPEC)
    return errors


def validate_template(template: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate a PodTemplateSpec."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors: list[FieldError] = []
    if labels := metadata.get("labels"):
        errors += validate_labels(labels, path.child("labels"))
    if annotations := metadata.get("annotations"):
        errors += validate_annotations(annotations, path.child("annotations"))
        errors += validate_pod_annotations(annotations, spec, path.child("annotations"))
        errors += validate_annotations_agree(annotations, spec, path.child("spec"))
    errors += validate_pod_spec(spec, path.child("spec"))
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(path.child("spec", "ephemeralContainers"), detail))
    return errors


def validate_pod_spec(
    spec: Mapping[str, Any], path: Path, *, pod_name: str | None = None, is_mirror: bool = False
) -> list[FieldError]:
    """Validate a PodSpec: the spec of a pod if `pod_name` is given, otherwise the spec of a pod template.

    The names of claims for ephemeral volumes begin with `pod_name`; If `is_mirror` is set, the pod mirrors a static
    pod.
    """
    is_pod = pod_name is not None
    grace_period, policy = spec.get("terminationGracePeriodSeconds"), spec.get("restartPolicy") or ""
    errors = [] if grace_period is not None else [required(path.child("terminationGracePeriodSeconds"))]
    volumes: dict[str, Mapping[str, Any]] = {}
    if given := spec.get("volumes"):
        volumes, found = validate_volumes(given, pod_name or "", path.child("volumes"), is_pod=is_pod)
        errors += found
    claims = spec.get("resourceClaims") or ()
    claim_names = {each.get("name") for each in claims if each.get("name")}
    errors += [_NO_CLAIMS for _ in claims] if is_mirror else _validate_claims(claims, path.child("resourceClaims"))
    system = spec.get("os")
    pod = PodParts(
        volumes,
        claim_names,
        grace_period,
        policy,
        spec.get("hostUsers") is not False,
        None if system is None else system.get("name") or "",
    )
    errors += validate_containers(spec, pod, path)
    if spec.get("resources") is not None and is_on("PodLevelResources"):
        errors += validate_pod_resources(spec, claim_names, path.child("resources"))
    if spec.get("hostNetwork"):
        errors += _validate_host_ports(spec, path.child("containers"), is_pod)
    for check in _WHOLE:
        errors += check(spec, path)
    for field, check_field in _CHECKS.items():
        if (value := spec.get(field)) not in _ABSENT:
            errors += check_field(value, path.child(field))
    return errors + _validate_rest(spec, path)


def _validate_placement(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    policy, dns = spec.get("restartPolicy") or "", spec.get("dnsPolicy") or ""
    errors = _not_one_of(policy, _RESTART_POLICIES, path.child("restartPolicy"))
    errors += _not_one_of(dns, _DNS_POLICIES, path.child("dnsPolicy"))
    if labels := spec.get("nodeSelector"):
        errors += validate_labels(labels, path.child("nodeSelector"))
    errors += validate_pod_security(spec, path)
    if affinity := spec.get("affinity"):
        errors += validate_affinity(affinity, path.child("affinity"))
    if dns == "None" or spec.get("dnsConfig") is not None:
        errors += _validate_dns(spec.get("dnsConfig"), dns, path.child("dnsConfig"))
    return errors


def _validate_rest(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if (runtime := spec.get("runtimeClassName")) is not None:
        errors += each_problem(name_formats.dns1123_subdomain, runtime, path.child("runtimeClassName"))
    if (preemption := spec.get("preemptionPolicy")) is not None:
        errors += _not_one_of(preemption, _PREEMPTION_POLICIES, path.child("preemptionPolicy"))
    if overhead := spec.get("overhead"):
        errors += validate_container_resources({"limits": overhead}, (), path.child("overhead"))
    if spec.get("os") is not None:
        errors += validate_system(spec, path)
    if (group := spec.get("schedulingGroup")) is not None:
        errors += _validate_group(group.get("podGroupName"), path.child("schedulingGroup", "podGroupName"))
    return errors + validate_file_volumes(spec, path)


def _validate_group(name: str | None, path: Path) -> list[FieldError]:
    if name is None:
        return [invalid(path, None, "must specify one of: `podGroupName`")]
    return each_problem(name_formats.dns1123_subdomain, name, path)


def _not_one_of(value: str, allowed: Sequence[str], path: Path) -> list[FieldError]:
    if value in allowed:
        return []
    return [not_supported(path, value, allowed) if value else required(path)]


def _validate_hostname_override(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate `hostnameOverride`, which replaces the host name of a pod (KEP-4762)."""
    name, below = spec.get("hostnameOverride"), path.child("hostnameOverride")
    if name is None:
        return []
    opposed = [field for field in ("setHostnameAsFQDN", "hostNetwork") if spec.get(field)]
    errors = [forbidden(below, f"may not be specified when {field} is true") for field in opposed]
    if name_formats.length(name) > _LONGEST_HOSTNAME:
        errors.append(too_long(below, _LONGEST_HOSTNAME))
    return errors + each_problem(name_formats.dns1123_subdomain, name, below)


def _validate_deadline(seconds: int, path: Path) -> list[FieldError]:
    return [] if 1 <= seconds <= LONGEST else [invalid(path, seconds, name_formats.out_of_range(1, LONGEST))]


def _validate_claims(claims: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate the resource claims with which a pod requests devices (KEP-4381)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    fields = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        at, name = path.at(index), claim.get("name") or ""
        if not name:
            errors.append(required(at.child("name")))
        elif name in seen:
            errors.append(duplicate(at.child("name"), name))
        else:
            errors += each_problem(name_formats.dns1123_label, name, at.child("name"))
        seen.add(name)
        given = [field for field in fields if claim.get(field) is not None]
        if len(given) != 1:
            detail = _TWO_CLAIMS if given else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(at, shown("PodResourceClaim", claim), detail))
        for field in given:
            errors += each_problem(name_formats.dns1123_subdomain, claim[field], at.child(field))
    return errors


def _validate_host_ports(spec: Mapping[str, Any], path: Path, is_pod: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort") or 0
            if (is_pod or host_port) and host_port != (port.get("containerPort") or 0):
                below = path.at(index).child("ports").at(number).child("hostPort")
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(below, host_port, detail))
    return errors


def _validate_dns(config: Mapping[str, Any] | None, policy: str, path: Path) -> list[FieldError]:
    if config is None:
        return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    below = path.child("nameservers")
    if policy == "None" and not servers:
        return [required(below, "must provide at least one DNS nameserver when `dnsPolicy` is None")]
    errors: list[FieldError] = []
    if len(servers) > _NAMESERVERS:
        errors.append(invalid(below, servers, f"must not have more than {_NAMESERVERS} nameservers"))
    errors += [error for index, server in enumerate(servers) for error in validate_legacy_ip(below.at(index), server)]
    below = path.child("searches")
    if len(searches) > _SEARCHES:
        errors.append(invalid(below, searches, f"must not have more than {_SEARCHES} search paths"))
    if name_formats.length(" ".join(searches)) > _SEARCH_LENGTH:
        detail = f"must not have more than {_SEARCH_LENGTH} characters (including spaces) in the search list"
        errors.append(invalid(below, searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            errors += each_problem(
                name_formats.dns1123_subdomain_with_underscore, search.removesuffix("."), below.at(index)
            )
    unnamed = [index for index, option in enumerate(config.get("options") or ()) if not option.get("name")]
    return errors + [required(path.child("options").at(index), "must not be empty") for index in unnamed]


def _validate_host_aliases(aliases: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, alias in enumerate(aliases):
        at = path.at(index)
        errors += validate_legacy_ip(at.child("ip"), alias.get("ip") or "")
        for number, name in enumerate(alias.get("hostnames") or ()):
            errors += each_problem(name_formats.dns1123_subdomain, name, at.child("hostnames").at(number))
    return errors


def _validate_readiness_gates(gates: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, gate in enumerate(gates):
        below = path.at(index).child("conditionType")
        errors += each_problem(name_formats.qualified_name, gate.get("conditionType") or "", below)
    return errors


def _tokens_without_account(spec: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                at = SPEC.child("volumes").at(index).child("projected", "sources").at(number)
                detail = "must not be specified when serviceAccountName is not set"
                errors.append(forbidden(at.child("serviceAccountToken"), detail))
    return errors


def _name(check: Callable[[str], list[str]]) -> Callable[[str, Path], list[FieldError]]:
    return lambda value, path: each_problem(check, value, path)


_WHOLE: tuple[Callable[[Mapping[str, Any], Path], list[FieldError]], ...] = (
    _validate_placement,
    lambda spec, path: _validate_readiness_gates(spec.get("readinessGates") or (), path.child("readinessGates")),
    lambda spec, path: validate_gates(spec.get("schedulingGates") or (), path.child("schedulingGates")),
    lambda spec, path: validate_spreading(
        spec.get("topologySpreadConstraints") or (), path.child("topologySpreadConstraints")
    ),
    validate_host_process,
    validate_host_users,
    _validate_hostname_override,
)
"""Validation functions that read several fields of a pod spec."""
_CHECKS: dict[str, Callable[[Any, Path], list[FieldError]]] = {
    "serviceAccountName": _name(name_formats.dns1123_subdomain),
    "nodeName": _name(name_formats.dns1123_subdomain),
    "activeDeadlineSeconds": _validate_deadline,
    "hostname": _name(name_formats.dns1123_label),
    "subdomain": _name(name_formats.dns1123_label),
    "tolerations": validate_tolerations,
    "hostAliases": _validate_host_aliases,
    "priorityClassName": _name(name_formats.dns1123_subdomain),
}
"""Validation functions for single fields of a pod spec, in Kubernetes' order."""
