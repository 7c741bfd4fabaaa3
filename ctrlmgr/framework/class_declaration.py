"""Declares a kind from a class statement, or from a name such as `v1/ConfigMap`.

Guarantees: a declaration is immutable and valid; the same class or name always gives the same declaration.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Resource, group_of, guess_resource
from ctrlmgr.framework.kind_name_suggestions import check_spelling, suggested
from ctrlmgr.framework.options_checks import check_list

_VERSION = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_CLUSTER_SCOPED = {
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "StorageClass"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("networking.k8s.io", "IngressClass"),
}


class Column(NamedTuple):
    """A column of `kubectl get`, which shows the value at `path` (such as `.spec.size`).

    The column's type is by default the field's type. If `priority` is above 0, the column is only shown with `kubectl
    get -o wide`.
    """

    name: str
    path: str
    type: str = ""
    description: str = ""
    priority: int = 0


class Scale(NamedTuple):
    """The paths of the scale subresource, such as `.spec.replicas`."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared kind."""

    api_version: str
    kind: str
    resource: Resource
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    existing: bool = False
    """Whether the kind is defined elsewhere, so that the app does not write its CustomResourceDefinition."""
    cls: Any = None
    """The class of the kind; None for a kind that is declared only by name."""

    @property
    def group(self) -> str:
        """Return the kind's group; empty for the core group."""
        return self.resource.group

    @property
    def version(self) -> str:
        """Return the kind's version."""
        return self.api_version.rpartition("/")[2]

    @property
    def where(self) -> str:
        """Return the file and line where the kind is declared, for messages."""
        return f"{self.cls.__module__}:{self.cls.__qualname__}" if self.cls is not None else self.label

    @property
    def label(self) -> str:
        """Return a label of the kind, such as `example.com/v1/Shop`."""
        return f"{self.api_version}/{self.kind}"


def declare(
    cls: Any,
    api_version: str,
    kind: str,
    *,
    plural: str,
    namespaced: bool,
    short_names: tuple[str, ...],
    categories: tuple[str, ...],
    columns: tuple[Column, ...],
    scale: Scale | None,
    existing: bool,
) -> Declaration:
    """Return the declaration of a class; raises TypeError if it is invalid."""
    resource = _resource(api_version, kind, cls.__qualname__)
    if plural:
        resource = Resource(resource.group, plural)
    existing = existing or is_builtin(resource.group)
    return Declaration(api_version, kind, resource, namespaced, short_names, categories, columns, scale, existing, cls)


def is_builtin(group: str) -> bool:
    """Return whether a group is one of Kubernetes' own API groups, whose kinds need no CustomResourceDefinition."""
    return "." not in group or group.endswith(".k8s.io")


@lru_cache(maxsize=256)
def named(name: str) -> Declaration:
    """Return the declaration of the kind with a name such as `v1/ConfigMap` or `apps/v1/Deployment`.

    Raises TypeError if the name is invalid. A cluster-scoped kind outside Kubernetes' own groups can be declared only
    by a class, because a name does not contain the scope.
    """
    api_version, _, kind = name.rpartition("/")
    resource = _resource(api_version, kind, name)
    return Declaration(api_version, kind, resource, (resource.group, kind) not in _CLUSTER_SCOPED, existing=True)


def declaration_of(kind: Any) -> Declaration:
    """Return the declaration of a class or a name; raises TypeError for any other value."""
    if isinstance(kind, str):
        return named(kind)
    found = getattr(kind, "declaration", None)
    if isinstance(found, Declaration):
        return found
    if inspect.isfunction(kind):
        raise TypeError(
            f"the decorator of {kind.__name__} takes a kind: write `v1/ConfigMap` or a class in parentheses"
        )
    shown = kind.__name__ if isinstance(kind, type) else repr(kind)
    raise TypeError(f"{shown} is not a kind: write `v1/ConfigMap`, or a class made with `api_version=`")


def _resource(api_version: str, kind: str, what: str) -> Resource:
    if not api_version:
        hint = suggested("", kind) or "; it looks like `v1/ConfigMap`"
        raise TypeError(f"{what!r} has no API version{hint}")
    group, version = group_of(api_version), api_version.rpartition("/")[2]
    if not _VERSION.fullmatch(version) or (group and not _GROUP.fullmatch(group)):
        raise TypeError(
            f"{what}: the API version {api_version!r} is not valid; write a version such as `example.com/v1`"
        )
    if not _KIND.fullmatch(kind):
        raise TypeError(f"{what}: {kind!r} is not a valid name of a kind; write a name such as `ConfigMap`")
    if is_builtin(group):
        check_spelling(group, kind, what)
    return guess_resource(api_version, kind)


def sequence_of(kinds: Sequence[Any], option: str) -> tuple[Declaration, ...]:
    """Return the declarations of the kinds in `value`; `option` is the name of the decorator's option for errors."""
    check_list(option, kinds, f"[{kinds!r}]" if isinstance(kinds, str) else '["v1/ConfigMap"]')
    return tuple(declaration_of(each) for each in kinds)
