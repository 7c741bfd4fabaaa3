"""Parses the discovery documents of extension servers: aggregated documents, and documents of one version.

Source: kube-aggregator `pkg/apiserver/handler_discovery.go`, apiserver `pkg/endpoints/installer.go`
(`ConvertGroupVersionIntoToDiscovery`). The functions raise ValueError if a discovery document does not have a known
form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ctrlmgr.api.unstructured import Unstructured

_NO_KIND: Mapping[str, str] = {"group": "", "version": "", "kind": ""}


class _Resource(msgspec.Struct, rename="camel"):
    name: str
    singular_name: str = ""
    namespaced: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None

    @property
    def scope(self) -> str:
        return "Namespaced" if self.namespaced else "Cluster"

    @property
    def response_kind(self) -> dict[str, str]:
        return {"group": self.group, "version": self.version, "kind": self.kind} if self.kind else dict(_NO_KIND)


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] = []


class _Version(msgspec.Struct):
    version: str
    resources: list[dict[str, Any]] | None = None


class _Metadata(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Metadata
    versions: list[_Version] | None = None


class _GroupList(msgspec.Struct):
    items: list[_Group] | None = None


def aggregated_resources(body: bytes) -> dict[tuple[str, str], list[Unstructured]]:
    """Return the resources of each group and version in an APIGroupDiscoveryList."""
    found = msgspec.json.decode(body, type=_GroupList)
    return {
        (group.metadata.name, version.version): [_with_kinds(each) for each in version.resources or ()]
        for group in found.items or ()
        for version in group.versions or ()
    }


def legacy_resources(body: bytes) -> list[Unstructured]:
    """Return the resources in an APIResourceList, converted to the form of aggregated discovery."""
    listed = msgspec.json.decode(body, type=_ResourceList).resources
    found = {each.name: _entry(each) for each in listed if "/" not in each.name}
    for each in listed:
        parent, _, name = each.name.partition("/")
        if name:
            _add(found.setdefault(parent, _bare(parent, each.scope)), name, each)
    return list(found.values())


def _entry(resource: _Resource) -> Unstructured:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {
        "resource": resource.name,
        "responseKind": kind,
        "scope": resource.scope,
        "singularResource": resource.singular_name,
        "verbs": resource.verbs,
        **({"shortNames": resource.short_names} if resource.short_names else {}),
        **({"categories": resource.categories} if resource.categories else {}),
    }


def _bare(name: str, scope: str) -> Unstructured:
    """Return an entry for a resource, if the discovery document lists only subresources of the resource."""
    return {"resource": name, "responseKind": dict(_NO_KIND), "scope": scope, "singularResource": "", "verbs": None}


def _add(parent: Unstructured, name: str, resource: _Resource) -> None:
    if parent["scope"] != resource.scope:
        raise ValueError(f"the scopes of {parent['resource']} and of its subresource {name} do not match")
    entry = {"subresource": name, "responseKind": resource.response_kind, "verbs": resource.verbs}
    parent.setdefault("subresources", []).append(entry)


def _with_kinds(resource: Unstructured) -> Unstructured:
    """Return a resource; if the resource or a subresource has no response kind, add an empty kind for old clients."""
    parts = resource.get("subresources") or ()
    more = {"subresources": [{**each, "responseKind": each.get("responseKind") or _NO_KIND} for each in parts]}
    return {**resource, "responseKind": resource.get("responseKind") or _NO_KIND, **(more if parts else {})}
