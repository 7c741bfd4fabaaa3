"""What is known of a kind: said once, in the class statement, or read from a name such as `v1/ConfigMap`.

Guarantees: a declaration is immutable and checked; the same class or name always gives the same one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Resource, group_of, guess_resource
from ctrlmgr.framework.spelling import check_spelling

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
    """A column of `kubectl get`: what stands at `path` (`.spec.size`), of a type that the field says if none is given.

    `priority` above 0 shows it with `-o wide` only.
    """

    name: str
    path: str
    type: str = ""
    description: str = ""
    priority: int = 0


class Scale(NamedTuple):
    """Where the scale subresource finds its numbers: paths such as `.spec.replicas`."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A kind, as it was declared."""

    api_version: str
    kind: str
    resource: Resource
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    existing: bool = False
    """Whether its definition is not ours to make."""
    cls: Any = None
    """Its class; None for a kind that is only named."""

    @property
    def group(self) -> str:
        """Its group; empty for the core one."""
        return self.resource.group

    @property
    def version(self) -> str:
        """Its version."""
        return self.api_version.rpartition("/")[2]

    @property
    def where(self) -> str:
        """Where it is declared, for messages."""
        return f"{self.cls.__module__}:{self.cls.__qualname__}" if self.cls is not None else self.label

    @property
    def label(self) -> str:
        """`example.com/v1/Shop`."""
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
    """Return what a class declares; raises TypeError, in one line, for what no kind can be."""
    resource = _resource(api_version, kind, cls.__qualname__)
    if plural:
        resource = Resource(resource.group, plural)
    existing = existing or is_builtin(resource.group)
    return Declaration(api_version, kind, resource, namespaced, short_names, categories, columns, scale, existing, cls)


def is_builtin(group: str) -> bool:
    """Whether a group is one of Kubernetes' own, whose kinds need no definition."""
    return "." not in group or group.endswith(".k8s.io")


@lru_cache(maxsize=256)
def named(name: str) -> Declaration:
    """Return the kind of a name such as `v1/ConfigMap` or `apps/v1/Deployment`; raises TypeError.

    One whose objects are in no namespace and which is not Kubernetes' own needs a class that says so.
    """
    api_version, _, kind = name.rpartition("/")
    resource = _resource(api_version, kind, name)
    return Declaration(api_version, kind, resource, (resource.group, kind) not in _CLUSTER_SCOPED, existing=True)


def declaration_of(kind: Any) -> Declaration:
    """Return what is known of a class, or of a name; raises TypeError for what is neither."""
    if isinstance(kind, str):
        return named(kind)
    found = getattr(kind, "declaration", None)
    if isinstance(found, Declaration):
        return found
    raise TypeError(f"{kind!r} is no kind: write `v1/ConfigMap`, or a class made with `api_version=`")


def _resource(api_version: str, kind: str, what: str) -> Resource:
    group, version = group_of(api_version), api_version.rpartition("/")[2]
    if not _VERSION.fullmatch(version) or (group and not _GROUP.fullmatch(group)):
        raise TypeError(f"{what}: the API version {api_version!r} is none; it looks like `example.com/v1`")
    if not _KIND.fullmatch(kind):
        raise TypeError(f"{what}: {kind!r} is no name of a kind; it looks like `ConfigMap`")
    if is_builtin(group):
        check_spelling(group, kind, what)
    return guess_resource(api_version, kind)


def sequence_of(kinds: Sequence[Any]) -> tuple[Declaration, ...]:
    """Return the declarations of several kinds."""
    return tuple(declaration_of(each) for each in kinds)
