"""What a pod and its containers may do on their node: security contexts, for Linux and for Windows.

Rules come from Kubernetes' `pkg/apis/core/validation/validation.go`, `validatePodSpecSecurityContext`,
`ValidateSecurityContext`, `validateOS` and their parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long
from ctrlmgr.engine.validation import names
from ctrlmgr.kinds.capabilities import CAPABILITIES
from ctrlmgr.kinds.core.pod.windows import validate_windows_options
from ctrlmgr.kinds.core.volume_sources import descending_path

Context = Mapping[str, Any]

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_PATH_MAX = 4095
_SYSCTL_LENGTH = 253
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_is_sysctl = re.compile(_SYSCTL).match
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_CHOICES = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}


def validate_pod_security(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Check a pod's own security context; `path` is the spec's."""
    context = spec.get("securityContext")
    if not context:
        return []
    below = path.child("securityContext")
    errors: list[FieldError] = []
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        errors += _validate_id(context.get(field), below.child(field))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += _validate_id(group, below.child("supplementalGroups").at(index))
    errors += _validate_sysctls(spec, context.get("sysctls") or (), below.child("sysctls"))
    for field, allowed in _CHOICES.items():
        value = context.get(field)
        if value is not None and value not in allowed:
            errors.append(not_supported(below.child(field), value, allowed))
    return errors + _validate_profiles(context, below)


def validate_namespaces(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Check which of its node's namespaces a pod shares."""
    errors: list[FieldError] = []
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(path.child("securityContext", "shareProcessNamespace"), True, detail))
    if spec.get("hostUsers") is False:
        detail = "when `hostUsers` is false"
        shared = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
        errors += [forbidden(path.child(shown), detail) for field, shown in shared if spec.get(field)]
    return errors


def validate_security_context(context: Context, host_users: bool, path: Path) -> list[FieldError]:
    """Check a container's security context."""
    errors: list[FieldError] = []
    if context.get("privileged") and not CAPABILITIES.allow_privileged:
        errors.append(forbidden(path.child("privileged"), "disallowed by cluster policy"))
    errors += _validate_id(context.get("runAsUser"), path.child("runAsUser"))
    errors += _validate_id(context.get("runAsGroup"), path.child("runAsGroup"))
    if (mount := context.get("procMount")) is not None:
        if mount not in _PROC_MOUNTS:
            errors.append(not_supported(path.child("procMount"), mount, _PROC_MOUNTS))
        if host_users and mount == "Unmasked":
            detail = "`hostUsers` must be false to use `Unmasked`"
            errors.append(invalid(path.child("procMount"), mount, detail))
    if context.get("allowPrivilegeEscalation") is False:
        cannot = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            errors.append(invalid(path, dict(context), f"{cannot} `privileged` to true"))
        added = (context.get("capabilities") or {}).get("add") or ()
        wrong = [each for each in added if each == "CAP_SYS_ADMIN"]
        errors += [invalid(path, dict(context), f"{cannot} `capabilities.Add` CAP_SYS_ADMIN") for _ in wrong]
    return errors + _validate_profiles(context, path)


def _validate_id(value: int | None, path: Path) -> list[FieldError]:
    return [] if value is None else [invalid(path, value, each) for each in names.user_id(value)]


def _validate_profiles(context: Context, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if (profile := context.get("seccompProfile")) is not None:
        errors += _validate_seccomp(profile, path.child("seccompProfile"))
    if options := context.get("windowsOptions"):
        errors += validate_windows_options(options, path.child("windowsOptions"))
    if (profile := context.get("appArmorProfile")) is not None:
        errors += validate_apparmor(profile, path.child("appArmorProfile"))
    return errors


def _validate_seccomp(profile: Context, path: Path) -> list[FieldError]:
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    below = path.child("localhostProfile")
    errors: list[FieldError] = []
    if not kind:
        errors.append(required(path.child("type"), "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(not_supported(path.child("type"), kind, _PROFILES))
    if kind != "Localhost":
        if local is not None:
            shown = {"Type": kind, "LocalhostProfile": local}
            errors.append(invalid(below, shown, "can only be set when seccomp type is Localhost"))
    elif local is None:
        errors.append(required(below, "must be set when seccomp type is Localhost"))
    else:
        errors += descending_path(local, below)
    return errors


def validate_apparmor(profile: Context, path: Path) -> list[FieldError]:
    """Check an AppArmor profile (`ValidateAppArmorProfileField`)."""
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    below = path.child("localhostProfile")
    if not kind:
        return [required(path.child("type"), "type is required when appArmorProfile is set")]
    if kind not in _PROFILES:
        return [not_supported(path.child("type"), kind, _PROFILES)]
    if kind != "Localhost":
        detail = "can only be set when AppArmor type is Localhost"
        return [] if local is None else [invalid(below, local, detail)]
    errors: list[FieldError] = []
    if local and local != local.strip():
        errors.append(invalid(below, local, "must not be padded with whitespace"))
    elif not local:
        errors.append(required(below, "must be set when AppArmor type is Localhost"))
    if names.length(local or "") > _PATH_MAX:
        errors.append(too_long(below, _PATH_MAX))
    return errors


def _validate_sysctls(spec: Mapping[str, Any], sysctls: Any, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name = sysctl.get("name") or ""
        at = path.at(index).child("name")
        if not name:
            errors.append(required(at))
        elif len(name) > _SYSCTL_LENGTH or not _is_sysctl(name):
            detail = f"must have at most {_SYSCTL_LENGTH} characters and match regex {_SYSCTL}"
            errors.append(invalid(at, name, detail))
        elif name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
        dotted = name if "." in name.partition("/")[0] else name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.append(invalid(at, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and dotted.startswith(_IPC_SYSCTLS):
            errors.append(invalid(at, name, "may not be specified when 'hostIPC' is true"))
    return errors
