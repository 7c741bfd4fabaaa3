"""Validates the environment variables of containers, and the sources of their values.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidateEnv` and `ValidateEnvFrom`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, not_found, required
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.core.pod.defaults import containers_of
from ctrlmgr.kinds.core.pod.downward_api import (
    ENVIRONMENT_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from ctrlmgr.kinds.core.volume_sources import no_backsteps

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_NO_SOURCE_WITHOUT_FILES = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
_TOO_MANY = "may not have more than one field specified at a time"


def validate_environment(variables: Iterable[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate the field `env` of a container."""
    errors: list[FieldError] = []
    for index, variable in enumerate(variables):
        name = variable.get("name") or ""
        if not name:
            errors.append(required(path.at(index).child("name")))
        elif problems := name_formats.env_var_name(name):
            errors += [invalid(path.at(index).child("name"), name, each) for each in problems]
        if (source := variable.get("valueFrom")) is not None:
            below = path.at(index).child("valueFrom")
            errors += _validate_source(source, bool(variable.get("value")), below)
    return errors


def _validate_source(source: Mapping[str, Any], has_value: bool, path: Path) -> list[FieldError]:
    given = [kind for kind in _SOURCES if source.get(kind) is not None]
    errors: list[FieldError] = []
    for kind in given:
        errors += _validate_reference(kind, source[kind], path.child(kind))
    if not given:
        errors.append(invalid(path, "", _NO_SOURCE if is_on("EnvFiles") else _NO_SOURCE_WITHOUT_FILES))
    elif has_value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(invalid(path, "", _TOO_MANY))
    return errors


def _validate_reference(kind: str, reference: Mapping[str, Any], path: Path) -> list[FieldError]:
    if kind == "fieldRef":
        return validate_field_reference(reference, ENVIRONMENT_FIELDS, path)
    if kind == "resourceFieldRef":
        return validate_resource_reference(reference, path, named=False)
    if kind == "fileKeyRef":
        return _validate_file_key(reference, path)
    errors = each_problem(name_formats.dns1123_subdomain, reference.get("name") or "", path.child("name"))
    return errors + _validate_key(reference, name_formats.config_map_key, path)


def _validate_key(reference: Mapping[str, Any], check: Any, path: Path) -> list[FieldError]:
    key = reference.get("key") or ""
    return each_problem(check, key, path.child("key")) if key else [required(path.child("key"))]


def _validate_file_key(reference: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = _validate_key(reference, name_formats.env_var_name, path)
    if not (volume := reference.get("volumeName")):
        errors.append(required(path.child("volumeName")))
    else:
        errors += each_problem(name_formats.dns1123_label, volume, path.child("volumeName"))
    if not reference.get("path"):
        return [*errors, required(path.child("path"))]
    return errors + no_backsteps(reference["path"], path.child("path"))


def validate_file_volumes(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate that files with values of variables are in emptyDir volumes (`validateFileKeyRefVolumes`)."""
    volumes = {each.get("name") or "": each for each in spec.get("volumes") or ()}
    errors: list[FieldError] = []
    for kind, index, container in containers_of(dict(spec)):
        for number, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName") or ""
            below = path.child(kind).at(index).child("env").at(number).child("valueFrom", "fileKeyRef", "volumeName")
            if name not in volumes:
                errors.append(not_found(below, name))
            elif volumes[name].get("emptyDir") is None:
                errors.append(invalid(below, name, "referenced volume must be of type emptyDir"))
    return errors


def validate_environment_sources(sources: Iterable[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate the field `envFrom` of a container."""
    errors: list[FieldError] = []
    for index, source in enumerate(sources):
        at = path.at(index)
        if prefix := source.get("prefix"):
            errors += each_problem(name_formats.env_var_name, prefix, at.child("prefix"))
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in given:
            name = source[kind].get("name") or ""
            below = at.child(kind, "name")
            problems = name_formats.subdomain_name(name, True) if name else ()
            errors += [invalid(below, name, each) for each in problems] if name else [required(below)]
        if not given:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid(path, "", _TOO_MANY))
    return errors
