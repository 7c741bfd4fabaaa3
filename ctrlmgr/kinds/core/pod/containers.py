"""Validates the containers of pods: regular containers, init containers, and ephemeral containers.

Guarantees: the validation of a container that has only a name and an image needs few dict look-ups.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `validateContainers` and similar functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.field import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.core.pod.env_vars import validate_environment, validate_environment_sources
from ctrlmgr.kinds.core.pod.pod_resources import validate_container_resources
from ctrlmgr.kinds.core.pod.probes import PROBES, validate_probes
from ctrlmgr.kinds.core.pod.security import validate_security_context
from ctrlmgr.kinds.core.pod.volumes.mounts import validate_mounts
from ctrlmgr.kinds.core.pod.volumes.validation import PULL_POLICIES, validate_pull_policy

PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_NOT_RESTARTABLE = "may not be set for init containers without restartPolicy=Always"
_EPHEMERAL = "cannot be set for an Ephemeral Container"
PADDED = "must not have leading or trailing whitespace"
_NOT_EPHEMERAL = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe"),
    *("startupProbe", "lifecycle"),
)
_UNSET: tuple[Any, ...] = (None, [], {})
_NO_POLICY = "must specify restartPolicy when restart rules are used"
_ACTIONS = ("Restart",)
_ACTIONS_ON_ALL = ("Restart", "RestartAllContainers")
_MOST_RULES, _MOST_CODES = 20, 255


class PodParts(NamedTuple):
    """The properties of a pod on which the validation of its containers depends."""

    volumes: Mapping[str, Mapping[str, Any]]
    claims: Collection[str]
    grace_period: int | None
    restart_policy: str
    host_users: bool
    system: str | None
    """The operating system of the pod (`spec.os.name`); None if the pod does not specify one."""


def validate_containers(spec: Mapping[str, Any], pod: PodParts, path: Path) -> list[FieldError]:
    """Validate all containers of a pod spec; `path` is the path of the pod spec."""
    containers = spec.get("containers") or ()
    initial = spec.get("initContainers") or ()
    errors = _validate_regular(containers, pod, path.child("containers"))
    if initial:
        errors += _validate_init(initial, containers, pod, path.child("initContainers"))
    if ephemeral := spec.get("ephemeralContainers"):
        known = [each.get("name") or "" for each in (*containers, *initial)]
        errors += _validate_ephemeral(ephemeral, known, pod, path.child("ephemeralContainers"))
    return errors


def _validate_regular(containers: Sequence[Mapping[str, Any]], pod: PodParts, path: Path) -> list[FieldError]:
    if not containers:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        at = path.at(index)
        errors += _validate_container(container, pod, at)
        name = container.get("name") or ""
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen.add(name)
        errors += validate_probes(container, pod.grace_period, pod.system, at)
        errors += _validate_restart_policy(container, at)
    return errors + _host_port_conflicts(containers, path)


def _validate_init(
    initial: Sequence[Mapping[str, Any]],
    regular: Sequence[Mapping[str, Any]],
    pod: PodParts,
    path: Path,
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen = {container.get("name") or "" for container in regular}
    for index, container in enumerate(initial):
        at = path.at(index)
        errors += _validate_container(container, pod, at)
        errors += _validate_init_restart_policy(container, at)
        name = container.get("name") or ""
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        elif name:
            seen.add(name)
        errors += _host_port_conflicts((container,), path)
        if container.get("restartPolicy") == "Always":
            errors += validate_probes(container, pod.grace_period, pod.system, at)
        else:
            given = [field for field in ("lifecycle", *PROBES) if container.get(field) is not None]
            errors += [forbidden(at.child(field), _NOT_RESTARTABLE) for field in given]
            errors += _restarts_on_resize(container, at.child("resizePolicy"))
    return errors


def _validate_ephemeral(
    ephemeral: Sequence[Mapping[str, Any]], known: list[str], pod: PodParts, path: Path
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen = set(known)
    for index, container in enumerate(ephemeral):
        at = path.at(index)
        errors += _validate_container(container, pod, at) + validate_padding(container, at)
        name, target = container.get("name") or "", container.get("targetContainerName") or ""
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen.add(name)
        if target and target not in known:
            errors.append(not_found(at.child("targetContainerName"), target))
        given = [field for field in _NOT_EPHEMERAL if container.get(field) not in _UNSET]
        errors += [forbidden(at.child(field), _EPHEMERAL) for field in given]
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            below = at.child("volumeMounts").at(number)
            fields = [field for field in ("subPath", "subPathExpr") if mount.get(field)]
            errors += [forbidden(below.child(field), _EPHEMERAL) for field in fields]
    return errors


def _validate_container(container: Mapping[str, Any], pod: PodParts, path: Path) -> list[FieldError]:
    errors = _validate_name_and_image(container, path)
    policy = container.get("terminationMessagePolicy") or ""
    if policy not in _MESSAGE_POLICIES:
        below = path.child("terminationMessagePolicy")
        errors.append(not_supported(below, policy, _MESSAGE_POLICIES) if policy else required(below))
    if ports := container.get("ports"):
        errors += _validate_ports(ports, path.child("ports"))
    if variables := container.get("env"):
        errors += validate_environment(variables, path.child("env"))
    if sources := container.get("envFrom"):
        errors += validate_environment_sources(sources, path.child("envFrom"))
    if container.get("volumeMounts") or container.get("volumeDevices"):
        errors += validate_mounts(container, pod.volumes, path)
    if (pull := container.get("imagePullPolicy") or "") not in PULL_POLICIES:
        errors += validate_pull_policy(pull, path.child("imagePullPolicy"))
    if resources := container.get("resources"):
        errors += validate_container_resources(resources, pod.claims, path.child("resources"))
    if policies := container.get("resizePolicy"):
        errors += _validate_resize_policies(policies, pod.restart_policy, path.child("resizePolicy"))
    if security := container.get("securityContext"):
        errors += validate_security_context(security, pod.host_users, path.child("securityContext"))
    return errors


def _validate_name_and_image(container: Mapping[str, Any], path: Path) -> list[FieldError]:
    name, image = container.get("name") or "", container.get("image") or ""
    errors: list[FieldError] = []
    if not name:
        errors.append(required(path.child("name")))
    elif problems := name_formats.dns1123_label(name):
        errors += [invalid(path.child("name"), name, each) for each in problems]
    if not image:
        errors.append(required(path.child("image")))
    return errors


def validate_padding(container: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate that an image has no spaces around it (`validateContainerOnlyForPod`).

    Templates may have such spaces.
    """
    image = container.get("image") or ""
    return [invalid(path.child("image"), image, PADDED)] if image != image.strip() else []


def _validate_ports(ports: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = path.at(index)
        if name := port.get("name"):
            problems = name_formats.port_name(name)
            errors += [invalid(at.child("name"), name, each) for each in problems]
            if not problems and name in seen:
                errors.append(duplicate(at.child("name"), name))
            seen.add(name)
        number, host_port = port.get("containerPort") or 0, port.get("hostPort") or 0
        if not number:
            errors.append(required(at.child("containerPort")))
        else:
            errors += [invalid(at.child("containerPort"), number, each) for each in name_formats.port_number(number)]
        if host_port:
            errors += [invalid(at.child("hostPort"), host_port, each) for each in name_formats.port_number(host_port)]
        protocol = port.get("protocol") or ""
        if protocol not in PROTOCOLS:
            below = at.child("protocol")
            errors.append(not_supported(below, protocol, PROTOCOLS) if protocol else required(below))
    return errors


def _host_port_conflicts(containers: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if host_port := port.get("hostPort"):
                key = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{host_port}"
                if key in taken:
                    errors.append(duplicate(path.at(index).child("ports").at(number).child("hostPort"), key))
                taken.add(key)
    return errors


def _validate_resize_policies(
    policies: Sequence[Mapping[str, Any]], restart_policy: str, path: Path
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            errors.append(duplicate(path.at(index), name))
        seen.add(name)
        for value, allowed in ((name, _RESIZABLE), (restart, _RESIZE_POLICIES)):
            if value not in allowed:
                errors.append(not_supported(path, value, allowed) if value else required(path))
        if restart_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, restart, detail))
    return errors


def _restarts_on_resize(container: Mapping[str, Any], path: Path) -> list[FieldError]:
    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(path.at(index).child("restartPolicy"), "RestartContainer", detail)
        for index, policy in enumerate(container.get("resizePolicy") or ())
        if policy.get("restartPolicy") == "RestartContainer"
    ]


def _validate_init_restart_policy(container: Mapping[str, Any], path: Path) -> list[FieldError]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules")
    if policy is None and rules:
        return [required(path.child("restartPolicy"), _NO_POLICY)]
    if policy == "Always" and rules and not is_on("RestartAllContainersOnContainerExits"):
        detail = "restartPolicyRules are not allowed for init containers with restart policy Always"
        return [forbidden(path.child("restartPolicyRules"), detail)]
    return _validate_restart_policy(container, path)


def _validate_restart_policy(container: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate the restart policy of a container and its restart rules (KEP-5307)."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    errors: list[FieldError] = []
    if policy is None and rules:
        errors.append(required(path.child("restartPolicy"), _NO_POLICY))
    elif policy is not None and policy not in _RESTART_POLICIES:
        errors.append(not_supported(path.child("restartPolicy"), policy, _RESTART_POLICIES))
    below = path.child("restartPolicyRules")
    if len(rules) > _MOST_RULES:
        errors.append(too_many(below, len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        errors += _validate_restart_rule(rule, below.at(index))
    return errors


def _validate_restart_rule(rule: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    actions = _ACTIONS_ON_ALL if is_on("RestartAllContainersOnContainerExits") else _ACTIONS
    if (action := rule.get("action") or "") not in actions:
        errors.append(not_supported(path.child("action"), action, actions))
    codes, below = rule.get("exitCodes"), path.child("exitCodes")
    if codes is None:
        return [*errors, required(below, "must be specified")]
    if (operator := codes.get("operator") or "") not in ("In", "NotIn"):
        errors.append(not_supported(below.child("operator"), operator, ("In", "NotIn")))
    if len(values := codes.get("values") or ()) > _MOST_CODES:
        errors.append(too_many(below.child("values"), len(values), _MOST_CODES))
    return errors
