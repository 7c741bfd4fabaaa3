"""The Pod Security Standards as a table: the check of each rule, by level and version.

Guarantees: a check applies from its first version on, until a newer check for the same rule replaces this check. A rule
of `restricted` replaces the `baseline` rule that it names in `instead_of`. Checks run in the order of their names; the
checks of `baseline` run first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from ctrlmgr.admission.podsecurity import checks_baseline as baseline
from ctrlmgr.admission.podsecurity import checks_restricted as restricted
from ctrlmgr.admission.podsecurity.checks_baseline import unless_user_namespace, unless_windows
from ctrlmgr.admission.podsecurity.findings import Check, Finding, Pod
from ctrlmgr.admission.podsecurity.levels import BASELINE, PRIVILEGED, LevelVersion


class Standard(NamedTuple):
    """One rule of the standards, in all versions."""

    forms: Mapping[int, Check]
    """The checks of the rule; each key is the first minor version that uses the check."""
    instead_of: str = ""
    """The baseline rule that this rule replaces; empty if the rule replaces none."""

    def at(self, version: int) -> Check | None:
        """Return the rule's check for a version; None if the rule did not exist in that version."""
        return next((form for since, form in sorted(self.forms.items(), reverse=True) if since <= version), None)


BASELINE_STANDARDS: Final[Mapping[str, Standard]] = {
    "appArmorProfile": Standard({0: baseline.app_armor_profile}),
    "capabilities_baseline": Standard({0: baseline.capabilities}),
    "hostNamespaces": Standard({0: baseline.host_namespaces}),
    "hostPathVolumes": Standard({0: baseline.host_path_volumes}),
    "hostPorts": Standard({0: baseline.host_ports}),
    "hostProbesAndHostLifecycle": Standard({34: baseline.host_probes}),
    "privileged": Standard({0: baseline.privileged}),
    "procMount": Standard({0: baseline.proc_mount, 35: unless_user_namespace(baseline.proc_mount)}),
    "seLinuxOptions": Standard({0: baseline.se_linux_options, 31: baseline.se_linux_options_31}),
    "seccompProfile_baseline": Standard({0: baseline.seccomp_annotations, 19: baseline.seccomp_profile}),
    "sysctls": Standard(
        {0: baseline.sysctls, 27: baseline.sysctls_27, 29: baseline.sysctls_29, 32: baseline.sysctls_32}
    ),
    "windowsHostProcess": Standard({0: baseline.windows_host_process}),
}
"""The rules of the level `baseline`, in the order in which they are checked."""

RESTRICTED_STANDARDS: Final[Mapping[str, Standard]] = {
    "allowPrivilegeEscalation": Standard(
        {8: restricted.allow_privilege_escalation, 25: unless_windows(restricted.allow_privilege_escalation)}
    ),
    "capabilities_restricted": Standard(
        {22: restricted.capabilities, 25: unless_windows(restricted.capabilities)}, "capabilities_baseline"
    ),
    "procMount_restricted": Standard({35: baseline.proc_mount}, "procMount"),
    "restrictedVolumes": Standard({0: restricted.restricted_volumes}, "hostPathVolumes"),
    "runAsNonRoot": Standard({0: restricted.run_as_non_root, 35: unless_user_namespace(restricted.run_as_non_root)}),
    "runAsUser": Standard({23: restricted.run_as_user, 35: unless_user_namespace(restricted.run_as_user)}),
    "seccompProfile_restricted": Standard(
        {19: restricted.required_seccomp_profile, 25: unless_windows(restricted.required_seccomp_profile)},
        "seccompProfile_baseline",
    ),
}
"""The rules that the level `restricted` adds, in the order in which they are checked."""


def evaluate(level: LevelVersion, pod: Pod) -> list[Finding]:
    """Return all violations of a policy's rules by a pod."""
    return [found for check in _checks(level) if (found := check(pod)) is not None]


def details(findings: list[Finding]) -> str:
    """Return findings as one string, such as `host ports (8080, 9090), privileged`."""
    return ", ".join(f"{each.reason} ({each.detail})" if each.detail else each.reason for each in findings)


@lru_cache(256)  # any minor version is possible, because labels may name it
def _checks(level: LevelVersion) -> tuple[Check, ...]:
    if level.level == PRIVILEGED:
        return ()
    basic = _at(BASELINE_STANDARDS, level.version)
    if level.level == BASELINE:
        return tuple(basic.values())
    more = _at(RESTRICTED_STANDARDS, level.version)
    replaced = {RESTRICTED_STANDARDS[name].instead_of for name in more}
    return (*(check for name, check in basic.items() if name not in replaced), *more.values())


def _at(standards: Mapping[str, Standard], version: int) -> dict[str, Check]:
    return {name: check for name, each in standards.items() if (check := each.at(version)) is not None}
