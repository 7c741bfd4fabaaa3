"""The rules of the level `baseline`: each function returns a pod's violation of one rule, or None.

Rules and wording come from `k8s.io/pod-security-admission/policy/check_*.go`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ctrlmgr.admission.podsecurity.findings import (
    Check,
    Fields,
    Finding,
    Pod,
    containers,
    plural,
    quoted,
    security_of,
    setters,
)
from ctrlmgr.kinds.core.pod.annotations import APPARMOR, SECCOMP_CONTAINER, SECCOMP_POD

_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ]
)
_SYSCTLS_27 = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29 = _SYSCTLS_27 | frozenset(
    [
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ]
)
_SYSCTLS_32 = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
_SELINUX = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SELINUX_31 = _SELINUX | {"container_engine_t"}
SECCOMP_TYPES = ("Localhost", "RuntimeDefault")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("postStart", "preStop")


def app_armor_profile(pod: Pod) -> Finding | None:
    """Require that no field and no annotation of the pod disables AppArmor."""
    bad = {kind for part in [pod.spec, *pod.containers] if (kind := _bad_app_armor(part)) is not None}
    names = [each["name"] for each in pod.containers if _bad_app_armor(each) is not None]
    who = setters(_bad_app_armor(pod.spec) is not None, names)
    annotations = sorted(
        f"{key}={json.dumps(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(APPARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if annotations:
        who.append(plural(len(annotations), "annotation", "annotations"))
    if not who:
        return None
    values = [*sorted(bad), *annotations]
    reason = plural(len(values), "forbidden AppArmor profile", "forbidden AppArmor profiles")
    return Finding(reason, f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}")


def _bad_app_armor(part: Fields) -> str | None:
    profile = security_of(part).get("appArmorProfile")
    if profile is None or profile.get("type") in ("RuntimeDefault", "Localhost"):
        return None
    return profile.get("type") or ""


def capabilities(pod: Pod) -> Finding | None:
    """Require that containers add no capabilities beyond the defaults of container runtimes."""
    added = {each["name"]: set(_added(each)) - _CAPABILITIES for each in pod.containers}
    names = [each["name"] for each in pod.containers if added[each["name"]]]
    if not names:
        return None
    more = quoted(sorted(set().union(*added.values())))
    return Finding(
        "non-default capabilities", f"{containers(names)} must not include {more} in securityContext.capabilities.add"
    )


def _added(container: Fields) -> list[str]:
    return (security_of(container).get("capabilities") or {}).get("add") or []


def host_namespaces(pod: Pod) -> Finding | None:
    """Require that the pod does not share the host's network, processes or IPC."""
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)]
    return Finding("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(pod: Pod) -> Finding | None:
    """Require that no volume is a path of the host (`hostPath`)."""
    names = [each["name"] for each in pod.spec.get("volumes") or () if each.get("hostPath") is not None]
    if not names:
        return None
    return Finding("hostPath volumes", f"{plural(len(names), 'volume', 'volumes')} {quoted(names)}")


def host_ports(pod: Pod) -> Finding | None:
    """Require that no container uses a port of the host (`hostPort`)."""
    ports = {each["name"]: _host_ports(each) for each in pod.containers}
    names = [each["name"] for each in pod.containers if ports[each["name"]]]
    if not names:
        return None
    taken = sorted(set().union(*ports.values()))
    uses = f"{plural(len(names), 'uses', 'use')} {plural(len(taken), 'hostPort', 'hostPorts')}"
    return Finding("hostPort", f"{containers(names)} {uses} {', '.join(taken)}")


def _host_ports(container: Fields) -> set[str]:
    return {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}


def host_probes(pod: Pod) -> Finding | None:
    """Require that probes and lifecycle hooks call only the pod itself, not another host."""
    hosts = {each["name"]: set(_hosts(each)) for each in pod.containers}
    names = sorted(name for name, found in hosts.items() if found)
    if not names:
        return None
    all_hosts = sorted(set().union(*hosts.values()))
    what = plural(len(all_hosts), "probe or lifecycle host", "probe or lifecycle hosts")
    return Finding(
        "probe or lifecycle host", f"{containers(names)} {plural(len(names), 'uses', 'use')} {what} {quoted(all_hosts)}"
    )


def _hosts(container: Fields) -> Iterator[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers = [*(container.get(field) for field in _PROBES), *(lifecycle.get(field) for field in _HANDLERS)]
    for handler in handlers:
        for action in ("httpGet", "tcpSocket"):
            host = ((handler or {}).get(action) or {}).get("host")
            if host:
                yield host


def privileged(pod: Pod) -> Finding | None:
    """Require that no container is privileged."""
    names = [each["name"] for each in pod.containers if security_of(each).get("privileged")]
    if not names:
        return None
    return Finding("privileged", f"{containers(names)} must not set securityContext.privileged=true")


def proc_mount(pod: Pod) -> Finding | None:
    """Require that /proc has the default mount type (`procMount`)."""
    kinds = {each["name"]: security_of(each).get("procMount") for each in pod.containers}
    names = [each["name"] for each in pod.containers if kinds[each["name"]] not in (None, "Default")]
    if not names:
        return None
    found = quoted(sorted({kinds[name] or "" for name in names}))
    return Finding("procMount", f"{containers(names)} must not set securityContext.procMount to {found}")


def unless_user_namespace(check: Check) -> Check:
    """Return a check that accepts pods with a user namespace, and calls the given check for all other pods."""

    def checked(pod: Pod) -> Finding | None:
        return None if pod.has_user_namespace else check(pod)

    return checked


def unless_windows(check: Check) -> Check:
    """Return a check that accepts Windows pods, and calls the given check for all other pods.

    On Windows, the rule of the given check does not apply.
    """

    def checked(pod: Pod) -> Finding | None:
        return None if pod.is_windows else check(pod)

    return checked


def _se_linux(allowed: frozenset[str]) -> Check:
    def checked(pod: Pod) -> Finding | None:
        problems = _SELinuxProblems(allowed)
        names = [each["name"] for each in pod.containers if problems.found_in(each)]
        who = setters(problems.found_in(pod.spec), names)
        if not who:
            return None
        detail = f"{' and '.join(who)} set forbidden securityContext.seLinuxOptions: {problems}"
        return Finding("seLinuxOptions", detail)

    return checked


class _SELinuxProblems:
    """The violations in the SELinux options of one pod and its containers."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed
        self._types: set[str] = set()
        self._set: set[str] = set()

    def found_in(self, part: Fields) -> bool:
        options = security_of(part).get("seLinuxOptions")
        if options is None:
            return False
        kind = options.get("type") or ""
        roles = {field for field in ("user", "role") if options.get(field)}
        self._set |= roles
        if kind not in self._allowed:
            self._types.add(kind)
            return True
        return bool(roles)

    def __str__(self) -> str:
        types = [f"{plural(len(self._types), 'type', 'types')} {quoted(sorted(self._types))}"] if self._types else []
        return "; ".join([*types, *(f"{field} may not be set" for field in ("user", "role") if field in self._set)])


se_linux_options = _se_linux(_SELINUX)
se_linux_options_31 = _se_linux(_SELINUX_31)


def seccomp_annotations(pod: Pod) -> Finding | None:
    """Require that annotations do not disable seccomp.

    The rule applies to policy versions before the seccomp fields existed.
    """
    keys = {SECCOMP_POD, *(SECCOMP_CONTAINER + each["name"] for each in pod.containers)}
    bad = sorted(
        f"{key}={json.dumps(value)}"
        for key in keys
        if (value := pod.annotations.get(key)) is not None and not _is_allowed_profile(value)
    )
    if not bad:
        return None
    return Finding("seccompProfile", f"forbidden {plural(len(bad), 'annotation', 'annotations')} {', '.join(bad)}")


def _is_allowed_profile(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def seccomp_profile(pod: Pod) -> Finding | None:
    """Require that no field of a pod disables seccomp."""
    bad = {kind for part in [pod.spec, *pod.containers] if (kind := bad_seccomp(part)) is not None}
    names = [each["name"] for each in pod.containers if bad_seccomp(each) is not None]
    who = setters(bad_seccomp(pod.spec) is not None, names)
    if not who:
        return None
    detail = f"{' and '.join(who)} must not set securityContext.seccompProfile.type to {quoted(sorted(bad))}"
    return Finding("seccompProfile", detail)


def bad_seccomp(part: Fields) -> str | None:
    """Return the type of a seccomp profile if this type is not allowed; None if it is allowed."""
    profile = security_of(part).get("seccompProfile")
    if profile is None or profile.get("type") in SECCOMP_TYPES:
        return None
    return profile.get("type") or ""


def _sysctls(allowed: frozenset[str]) -> Check:
    def checked(pod: Pod) -> Finding | None:
        names = [each["name"] for each in pod.security.get("sysctls") or () if each["name"] not in allowed]
        return Finding("forbidden sysctls", ", ".join(names)) if names else None

    return checked


sysctls = _sysctls(_SYSCTLS)
sysctls_27 = _sysctls(_SYSCTLS_27)
sysctls_29 = _sysctls(_SYSCTLS_29)
sysctls_32 = _sysctls(_SYSCTLS_32)


def windows_host_process(pod: Pod) -> Finding | None:
    """Require that no container is a Windows host process."""
    who = setters(_is_host_process(pod.spec), [each["name"] for each in pod.containers if _is_host_process(each)])
    if not who:
        return None
    return Finding("hostProcess", f"{' and '.join(who)} must not set securityContext.windowsOptions.hostProcess=true")


def _is_host_process(part: Fields) -> bool:
    return bool((security_of(part).get("windowsOptions") or {}).get("hostProcess"))
