"""Validates the security contexts of pods and containers, for Linux and for Windows.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `validatePodSpecSecurityContext`,
`ValidateSecurityContext`, `validateOS` and the functions that they call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.capabilities import CAPABILITIES
from ctrlmgr.kinds.core.pod.defaults import containers_of
from ctrlmgr.kinds.core.pod.windows import validate_windows_options
from ctrlmgr.kinds.core.volume_sources import descending_path
from ctrlmgr.kinds.spec_difference import shown

Context = Mapping[str, Any]

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_PATH_MAX = 4095
_SYSCTL_LENGTH = 253
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_is_sysctl = re.compile(_SYSCTL.strip("^$")).fullmatch
_IPC_SYSCTLS = frozenset(
    f"kernel.{each}"
    for each in ("sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "shm", "msgmax", "msgmnb", "msgmni", "msg")
)
_SWAPPED = str.maketrans("./", "/.")


def validate_pod_security(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate the security context of a pod; `path` is the path of the pod spec."""
    context = spec.get("securityContext") or {}
    below = path.child("securityContext")
    errors: list[FieldError] = []
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        errors += _validate_id(context.get(field), below.child(field))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += _validate_id(group, below.child("supplementalGroups").at(index))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(below.child("shareProcessNamespace"), True, detail))
    errors += _validate_sysctls(spec, context.get("sysctls") or (), below.child("sysctls"))
    errors += _one_of(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), below)
    errors += _validate_profiles(context, below)
    errors += _one_of(context, "supplementalGroupsPolicy", ("Merge", "Strict"), below)
    policies = ("MountOption", "Recursive") if is_on("SELinuxMount") else ("Recursive",)
    return errors + _one_of(context, "seLinuxChangePolicy", policies, below)


def _one_of(context: Context, field: str, allowed: tuple[str, ...], path: Path) -> list[FieldError]:
    value = context.get(field)
    return [] if value is None or value in allowed else [not_supported(path.child(field), value, allowed)]


def validate_host_users(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate that a pod with `hostUsers: false` shares no other host namespaces and has no block devices."""
    if spec.get("hostUsers") is not False:
        return []
    shared = [("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    if not is_on("UserNamespacesHostNetworkSupport"):
        shared.insert(0, ("hostNetwork", "hostNetwork"))
    found = [path.child(shown) for field, shown in shared if spec.get(field)]
    for kind, index, container in containers_of(dict(spec)):
        if container.get("volumeDevices"):
            found.append(path.child(kind).at(index).child("volumeDevices"))
    return [forbidden(each, "when `hostUsers` is false") for each in found]


def validate_security_context(context: Context, host_users: bool, path: Path) -> list[FieldError]:
    """Validate a container's security context."""
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
    errors += _validate_seccomp(context.get("seccompProfile"), path.child("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        errors += _validate_escalation(context, path)
    return errors + _validate_platforms(context, path)


def _validate_escalation(context: Context, path: Path) -> list[FieldError]:
    cannot = "cannot set `allowPrivilegeEscalation` to false and"
    wrong = [f"{cannot} `privileged` to true"] if context.get("privileged") else []
    added = (context.get("capabilities") or {}).get("add") or ()
    wrong += [f"{cannot} `capabilities.Add` CAP_SYS_ADMIN" for each in added if each == "CAP_SYS_ADMIN"]
    return [invalid(path, shown("SecurityContext", context), each) for each in wrong]


def _validate_id(value: int | None, path: Path) -> list[FieldError]:
    return [] if value is None else [invalid(path, value, each) for each in name_formats.user_id(value)]


def _validate_profiles(context: Context, path: Path) -> list[FieldError]:
    errors = _validate_seccomp(context.get("seccompProfile"), path.child("seccompProfile"))
    return errors + _validate_platforms(context, path)


def _validate_platforms(context: Context, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if options := context.get("windowsOptions"):
        errors += validate_windows_options(options, path.child("windowsOptions"))
    if (profile := context.get("appArmorProfile")) is not None:
        errors += validate_apparmor(profile, path.child("appArmorProfile"))
    return errors


def _validate_seccomp(profile: Context | None, path: Path) -> list[FieldError]:
    if profile is None:
        return []
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    below = path.child("localhostProfile")
    errors: list[FieldError] = []
    if not kind:
        errors.append(required(path.child("type"), "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(not_supported(path.child("type"), kind, _PROFILES))
    if kind != "Localhost":
        if local is not None:
            detail = "can only be set when seccomp type is Localhost"
            errors.append(invalid(below, shown("SeccompProfile", profile), detail))
    elif local is None:
        errors.append(required(below, "must be set when seccomp type is Localhost"))
    else:
        errors += descending_path(local, below)
    return errors


def validate_apparmor(profile: Context, path: Path) -> list[FieldError]:
    """Validate an AppArmor profile (`ValidateAppArmorProfileField`)."""
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
    if name_formats.length(local or "") > _PATH_MAX:
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
        namespace = _namespace(name)
        if spec.get("hostNetwork") and namespace == "Net":
            errors.append(invalid(at, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and namespace == "IPC":
            errors.append(invalid(at, name, "may not be specified when 'hostIPC' is true"))
    return errors


def _namespace(sysctl: str) -> str:
    """Return the kernel namespace to which a sysctl belongs.

    The result is empty if the sysctl belongs to no kernel namespace (component-helpers `GetNamespace`).
    """
    separator = next((character for character in sysctl if character in "./"), ".")
    dotted = (sysctl if separator == "." else sysctl.translate(_SWAPPED)).partition("*")[0]
    if dotted.startswith("net."):
        return "Net"
    return "IPC" if dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.") else ""
