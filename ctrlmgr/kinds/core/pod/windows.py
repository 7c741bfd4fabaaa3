"""Validates pods on Windows, and the fields that exist only for Windows.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `validateOS`, `validateWindows`, `validateLinux`,
`validateWindowsHostProcessPod` and `validateWindowsSecurityContextOptions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.capabilities import CAPABILITIES
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.core.pod.defaults import containers_of

_SYSTEMS = ("linux", "windows")
_NOT_FOR_WINDOWS = "cannot be set for a windows pod"
_NOT_FOR_LINUX = "windows options cannot be set for a linux pod"
_SPEC_SIZE = 64
_DOMAIN_LENGTH = 256
_USER_LENGTH = 104
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_is_domain = re.compile(rf'(?:[^\\/:*?"<>|.][^\\/:*?"<>|]{{0,14}}|{_DNS_LABEL}(?:\.{_DNS_LABEL})*)').fullmatch
_POD_FIELDS = frozenset(("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"))
"""Fields that are in the spec in the published type of pod specs, and in the security context in Kubernetes' internal
type.
"""
_POD_CONTEXT = (
    "appArmorProfile",
    "seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "shareProcessNamespace",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_CONTEXT = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_ZERO_IS_UNSET = ("hostPID", "hostIPC", "sysctls")


def validate_system(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate `spec.os` of a pod, and validate that this operating system supports each field of the pod."""
    system = spec.get("os")
    if system is None:
        return []
    name = system.get("name") or ""
    if not name:
        return [required(path.child("os", "name"))]
    if name not in _SYSTEMS:
        return [not_supported(path.child("os"), name, _SYSTEMS)]
    if name == "linux":
        return [forbidden(each, _NOT_FOR_LINUX) for each in _given(spec, ("windowsOptions",), path)]
    return [forbidden(each, _NOT_FOR_WINDOWS) for each in _given(spec, _POD_CONTEXT, path)]


def _given(spec: Mapping[str, Any], context: tuple[str, ...], path: Path) -> list[Path]:
    security = spec.get("securityContext") or {}
    found = [
        path.child(field) if field in _POD_FIELDS else path.child("securityContext", field)
        for field in context
        if _is_set(spec if field in _POD_FIELDS else security, field)
    ]
    of_containers = context if len(context) == 1 else _CONTAINER_CONTEXT
    for kind, index, container in containers_of(dict(spec)):
        security = container.get("securityContext") or {}
        below = path.child(kind).at(index).child("securityContext")
        found += [below.child(field) for field in of_containers if _is_set(security, field)]
    return found


def _is_set(owner: Mapping[str, Any], field: str) -> bool:
    value = owner.get(field)
    return bool(value) if field in _ZERO_IS_UNSET else value is not None


def validate_host_process(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate that either all containers of the pod are Windows host processes, or no container is one."""
    of_pod = _host_process(spec)
    errors: list[FieldError] = []
    flags: list[bool] = []
    for kind, index, container in containers_of(dict(spec)):
        own = _host_process(container)
        if of_pod is not None and own is not None and own != of_pod:
            detail = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            below = path.child(kind).at(index).child("securityContext", "windowsOptions", "hostProcess")
            errors.append(invalid(below, own, detail))
        flags.append(bool(of_pod) if own is None else own)
    if any(flags):
        if not all(flags):
            detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
            errors.append(invalid(path, "", detail))
        if not spec.get("hostNetwork"):
            detail = "hostNetwork must be true if pod contains any hostProcess containers"
            errors.append(invalid(path.child("hostNetwork"), False, detail))
        if not CAPABILITIES.allow_privileged:
            errors.append(forbidden(path, "hostProcess containers are disallowed by cluster policy"))
    return errors


def _host_process(owner: Mapping[str, Any]) -> bool | None:
    options = (owner.get("securityContext") or {}).get("windowsOptions") or {}
    return options.get("hostProcess")


def validate_windows_options(options: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate WindowsSecurityContextOptions."""
    errors: list[FieldError] = []
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        errors += each_problem(name_formats.dns1123_subdomain, name, path.child("gmsaCredentialSpecName"))
    if (spec := options.get("gmsaCredentialSpec")) is not None:
        below = path.child("gmsaCredentialSpec")
        if not spec:
            errors.append(invalid(below, spec, "gmsaCredentialSpec cannot be an empty string"))
        elif name_formats.length(spec) > _SPEC_SIZE * 1024:
            errors.append(invalid(below, spec, f"gmsaCredentialSpec size must be under {_SPEC_SIZE} KiB"))
    if (user := options.get("runAsUserName")) is not None:
        errors += [invalid(path.child("runAsUserName"), user, f"runAsUserName{each}") for each in _user_problems(user)]
    return errors


def _user_problems(name: str) -> list[str]:
    if not name:
        return [" cannot be an empty string"]
    if re.search(r"[\x00-\x1f\x7f]", name):
        return [" cannot contain control characters"]
    if name.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, slash, user = name.rpartition("\\")
    problems: list[str] = []
    if name_formats.length(domain) >= _DOMAIN_LENGTH:
        problems.append(f"'s Domain length must be under {_DOMAIN_LENGTH} characters")
    if slash and not _is_domain(domain):
        problems.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("'s User cannot be empty")
    elif name_formats.length(user) > _USER_LENGTH:
        problems.append(f"'s User length must not be longer than {_USER_LENGTH} characters")
    if user and not user.strip(". "):
        problems.append("'s User cannot contain only periods or spaces")
    if re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
        problems.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems
