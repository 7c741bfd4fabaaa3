"""Reads the configuration of PodSecurity: the default policy of namespaces, and the exemptions.

Rules come from `k8s.io/pod-security-admission/admission/api` (PodSecurityConfiguration).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from ctrlmgr.admission.podsecurity.levels import LEVELS, LevelVersion, Policy, parse_level, parse_version
from ctrlmgr.settings.configuration_files import Document

_VERSIONS: Final = tuple(f"pod-security.admission.config.k8s.io/{each}" for each in ("v1", "v1beta1", "v1alpha1"))


class PodSecurityConfiguration(NamedTuple):
    """The configuration of the plugin PodSecurity."""

    defaults: Policy = Policy()
    """The Pod Security policy of namespaces without labels."""
    usernames: frozenset[str] = frozenset()
    """The names of users whose pods are exempt from checks."""
    runtime_classes: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()


class _Exemptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    usernames: list[str] = []
    runtime_classes: list[str] = msgspec.field(default_factory=list, name="runtimeClasses")
    namespaces: list[str] = []


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    defaults: dict[str, str] = {}
    exemptions: _Exemptions = _Exemptions()


def read_pod_security(document: Document | None) -> PodSecurityConfiguration:
    """Return the configuration that a document contains; raises `SettingsError` if the document is invalid."""
    if document is None:
        return PodSecurityConfiguration()
    read = document.read("PodSecurityConfiguration", _VERSIONS, _Configuration)
    exempt = read.exemptions
    return PodSecurityConfiguration(
        _policy(document, read.defaults),
        frozenset(exempt.usernames),
        frozenset(exempt.runtime_classes),
        frozenset(exempt.namespaces),
    )


def _policy(document: Document, given: dict[str, str]) -> Policy:
    modes = {mode: LevelVersion() for mode in Policy._fields}
    for key, text in given.items():
        mode, is_version = key.removesuffix("-version"), key.endswith("-version")
        if mode not in modes:
            raise document.refuse(f"there is no mode {key!r}", "defaults", key)
        level, version = parse_level(text), parse_version(text)
        if is_version and version is not None:
            modes[mode] = modes[mode]._replace(version=version)
        elif not is_version and level is not None:
            modes[mode] = modes[mode]._replace(level=level)
        else:
            expected = '"latest" or "v1.x"' if is_version else f"one of {', '.join(LEVELS)}"
            raise document.refuse(f"{key} must be {expected}, not {text!r}", "defaults", key)
    return Policy(**modes)
