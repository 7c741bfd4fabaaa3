"""The strategy of StorageVersions: the versions in which each API server encodes and decodes a resource.

Source: Kubernetes `pkg/apis/apiserverinternal/validation/validation.go` and
`pkg/registry/apiserverinternal/storageversion/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.simple_strategies import GuardedStrategy

_STATUS = Path("status")
_EMPTY = "must be non-empty"
_NO_API_VERSION = (
    "an apiVersion is "
    + name_formats.mismatch(
        "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character",
        "[a-z]([-a-z0-9]*[a-z0-9])?",
        "my-name",
        "abc-123",
    )
    + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"
)


def storage_version_name(name: str, is_prefix: bool = False) -> list[str]:
    """Return the problems of a name, which must consist of a group and a resource (`apps.deployments`)."""
    group, dot, resource = name.rpartition(".")
    if not dot:
        return ["name must be in the form of <group>.<resource>"]
    return [
        *(f"the group segment {each}" for each in name_formats.dns1123_subdomain(group)),
        *(f"the resource segment {each}" for each in name_formats.dns1035_label(resource)),
    ]


class StorageVersionStrategy(GuardedStrategy):
    """The strategy of the kind internal.apiserver.k8s.io/v1alpha1 StorageVersion."""

    name_check = staticmethod(storage_version_name)
    revalidates = 0
    compares_metadata = False
    status_keeps = METADATA

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate a changed status; the spec is not validated, because it has no fields."""
        return _validate_status(new.get("status") or {}) if ctx.subresource == "status" else []


def common_version(servers: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the version in which all servers encode objects; None if they differ or if there is no server."""
    encoding = {each.get("encodingVersion") or "" for each in servers}
    return encoding.pop() if len(encoding) == 1 else None


def _validate_status(status: Mapping[str, Any]) -> list[FieldError]:
    servers = status.get("storageVersions") or ()
    errors: list[FieldError] = []
    known: set[str] = set()
    for index, server in enumerate(servers):
        path, name = _STATUS.child("storageVersions").at(index), server.get("apiServerID") or ""
        if name in known:
            errors.append(duplicate(path.child("apiServerID"), name))
        known.add(name)
        errors += _validate_server(server, path)
    errors += _validate_common(servers, status.get("commonEncodingVersion"))
    return errors + _validate_conditions(status.get("conditions") or ())


def _validate_server(server: Mapping[str, Any], path: Path) -> list[FieldError]:
    encoding = server.get("encodingVersion") or ""
    decodable, served = server.get("decodableVersions"), server.get("servedVersions") or ()
    errors = each_problem(name_formats.dns1123_subdomain, server.get("apiServerID") or "", path.child("apiServerID"))
    errors += _validate_version(encoding, path.child("encodingVersion"))
    for index, version in enumerate(decodable or ()):
        errors += _validate_version(version, path.child("decodableVersions").at(index))
    if encoding not in (decodable or ()):
        words = f"decodableVersions must include encodingVersion {encoding}"
        errors.append(invalid(path.child("decodableVersions"), decodable, words))
    for index, version in enumerate(served):
        below = path.child("servedVersions").at(index)
        errors += _validate_version(version, below)
        if version not in (decodable or ()):
            listed = f"[{' '.join(decodable or ())}]"
            words = f"individual served version : {version} must be included in decodableVersions : {listed}"
            errors.append(invalid(below, version, words))
    return errors


def _validate_version(version: str, path: Path) -> list[FieldError]:
    problems = _version_problems(version)
    return [invalid(path, version, ",".join(problems))] if problems else []


def _version_problems(api_version: str) -> list[str]:
    """Return the problems of an apiVersion, with or without a group (`isValidAPIVersion`)."""
    *group, version = api_version.split("/")
    if len(group) > 1:
        return [_NO_API_VERSION]
    problems: list[str] = []
    for each in group:
        found = name_formats.dns1123_subdomain(each) if each else [_EMPTY]
        problems += [f"group part: {problem}" for problem in found]
    found = name_formats.dns1035_label(version) if version else [_EMPTY]
    return problems + [f"version part: {problem}" for problem in found]


def _validate_common(servers: Sequence[Mapping[str, Any]], found: str | None) -> list[FieldError]:
    actual, path = common_version(servers), _STATUS.child("commonEncodingVersion")
    if actual == found:
        return []
    if actual is None:
        words = (
            "should be nil if servers do not agree on the same encoding version, or if there is no server reporting "
            "the supported versions yet"
        )
        return [invalid(path, found, words)]
    words = f"the common encoding version is {actual}" if found is None else _other_common(actual)
    return [invalid(path, found, words)]


def _other_common(actual: str) -> str:
    return f"the actual common encoding version is {actual}"


def _validate_conditions(conditions: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: dict[str, int] = {}
    for index, condition in enumerate(conditions):
        path, type_ = _STATUS.at(index), condition.get("type") or ""
        if type_ in seen:
            words = f"the type of the condition is not unique, it also appears in conditions[{seen[type_]}]"
            errors.append(invalid(path.child("type"), type_, words))
        seen[type_] = index
        errors += each_problem(name_formats.qualified_name, type_, path.child("type"))
        errors += each_problem(name_formats.qualified_name, condition.get("status") or "", path.child("status"))
        errors += [required(path.child(name)) for name in ("reason", "message") if not condition.get(name)]
    return errors
