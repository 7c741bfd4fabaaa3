"""The registry of kinds: the built-in kinds of Kubernetes 1.36, to which custom kinds can be added.

Guarantees:
- The verbs, names, categories and subresources of the kinds are those in Kubernetes' discovery documents, which this
  package contains. All other properties of a kind are in the module `declared` of its group.
- A kind of an optional version is served only if its version is enabled and its feature gate is on. A kind that is not
  served is registered nevertheless, so that stored objects can be read.
- Each kind with a status subresource has a strategy with `has_status`; only the versions of one kind share a strategy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.kind import GroupVersionKind, Kind, Subresource
from ctrlmgr.engine.kind_registry import Group, Kinds
from ctrlmgr.engine.managedfields.reset_fields import keeping
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.engine.tables.table_printer import CREATED_AT, Printer
from ctrlmgr.extensions.custom.custom_kind_registration import CustomKinds
from ctrlmgr.kinds.admissionregistration import declared as admissionregistration
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from ctrlmgr.kinds.apiextensions import declared as apiextensions
from ctrlmgr.kinds.apiregistration import declared as apiregistration
from ctrlmgr.kinds.apiserverinternal import declared as apiserverinternal
from ctrlmgr.kinds.apps import declared as apps
from ctrlmgr.kinds.autoscaling import declared as autoscaling
from ctrlmgr.kinds.batch import declared as batch
from ctrlmgr.kinds.certificates import declared as certificates
from ctrlmgr.kinds.coordination import declared as coordination
from ctrlmgr.kinds.core import declared as core
from ctrlmgr.kinds.discovery import declared as discovery
from ctrlmgr.kinds.events import declared as events
from ctrlmgr.kinds.flowcontrol import declared as flowcontrol
from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.networking import declared as networking
from ctrlmgr.kinds.node import declared as node
from ctrlmgr.kinds.policy import declared as policy
from ctrlmgr.kinds.rbac import declared as rbac
from ctrlmgr.kinds.resource import declared as resource
from ctrlmgr.kinds.scheduling import declared as scheduling
from ctrlmgr.kinds.storage import declared as storage
from ctrlmgr.kinds.storagemigration import declared as storagemigration
from ctrlmgr.kinds.version_conversions import connect
from ctrlmgr.schema import published_schema
from ctrlmgr.schema.definitions import Definitions

_Name = tuple[str, str]
"""The apiVersion and the name of a kind."""

_GROUPS = (
    core,
    admissionregistration,
    apiextensions,
    apiregistration,
    apiserverinternal,
    apps,
    autoscaling,
    batch,
    certificates,
    coordination,
    discovery,
    events,
    flowcontrol,
    networking,
    node,
    policy,
    rbac,
    resource,
    scheduling,
    storage,
    storagemigration,
)


def declared(ranges: Ranges | None = None) -> Iterator[Declaration]:
    """Yield the declarations of all built-in kinds; Services get addresses and node ports from `ranges`."""
    yield core.service(ranges)
    for group in _GROUPS:
        yield from group.KINDS


def builtin_kinds(
    ranges: Ranges | None = None,
    *,
    declarations: Iterable[Declaration] | None = None,
    served: Collection[str] = (),
    disabled: Collection[str] = (),
) -> Kinds:
    """Return a registry of the built-in kinds; Services get addresses and node ports from `ranges`.

    `declarations` are the declarations of the kinds; by default, all built-in kinds are declared. `served` contains the
    optional versions to serve, such as `resource.k8s.io/v1alpha3`, or single resources of them, such as
    `resource.k8s.io/v1alpha3/devicetaintrules`. `disabled` contains the versions and resources that are not served.
    """
    declarations = declared(ranges) if declarations is None else declarations
    known = {(each.api_version, each.kind): each for each in declarations}
    definitions = Definitions.builtin()
    discovered = (*_discovered(definitions, known), *_optional(definitions, known, served))
    made = {(kind.gvk.api_version, kind.name): kind for kind in discovered}
    for name, kind in sorted(made.items(), key=lambda item: _is_stored_elsewhere(known.get(item[0]))):
        _complete(kind, known.get(name) or Declaration(*name), made)
    for kind in made.values():
        kind.is_served = kind.is_served and _is_enabled(kind, served, disabled)
    connect(kind for kind in made.values() if kind.is_served or kind.to_storage is None)
    kinds = Kinds(definitions, made.values(), _groups(kind.gvk for kind in made.values() if kind.is_served))
    kinds.refresh = CustomKinds(kinds).refresh
    return kinds


def _is_enabled(kind: Kind, served: Collection[str], disabled: Collection[str]) -> bool:
    """Return whether a kind is served; a setting for its resource overrides one for its version."""
    version = kind.gvk.api_version
    resource = f"{version}/{kind.resource.plural}"
    return resource in served or (version not in disabled and resource not in disabled)


def _default_groups() -> Mapping[str, tuple[str, ...]]:
    """Return the groups in discovery's order, with the versions that are served by default."""
    listed = published_schema.discovery()["/apis"]["groups"]
    return {"": ("v1",)} | {each["name"]: tuple(one["version"] for one in each["versions"]) for each in listed}


def _groups(served: Iterable[GroupVersionKind]) -> Sequence[Group]:
    """Return the groups of the kinds `served` in discovery's order; versions that are not default ones are last."""
    versions: dict[str, dict[str, None]] = {}
    for group, version, _ in served:
        versions.setdefault(group, {})[version] = None
    default = _default_groups()
    names = sorted(versions, key=lambda name: [*default].index(name) if name in default else len(default))
    order = {name: [*filter(versions[name].__contains__, default.get(name, ())), *versions[name]] for name in names}
    return [Group(name, tuple(dict.fromkeys(found))) for name, found in order.items()]


def _discovered(definitions: Definitions, known: Mapping[_Name, Declaration]) -> Iterator[Kind]:
    """Yield all kinds of the discovery documents, in their order."""
    for group, versions in _default_groups().items():
        for version in versions:
            yield from _kinds_of(definitions, group, version, known)


def _optional(definitions: Definitions, known: Mapping[_Name, Declaration], served: Collection[str]) -> Iterator[Kind]:
    """Yield the declared kinds of all optional versions; only kinds of the versions `served` can be served."""
    for api_version in published_schema.optional():
        group, _, version = api_version.partition("/")
        for kind in _kinds_of(definitions, group, version, known):
            if declaration := known.get((api_version, kind.name)):
                gate = declaration.feature_gate
                chosen = api_version in served or f"{api_version}/{kind.resource.plural}" in served
                kind.is_served = chosen and (not gate or is_on(gate))
                yield kind


def _kinds_of(definitions: Definitions, group: str, version: str, known: Mapping[_Name, Declaration]) -> Iterator[Kind]:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    entries = published_schema.resource_lists()[path]["resources"]
    parts: dict[str, dict[str, Subresource]] = {}
    for entry in entries:
        plural, slash, part = entry["name"].partition("/")
        if slash:
            gvk = _gvk(entry, group, version)
            printer = _printer(known, gvk)
            parts.setdefault(plural, {})[part] = Subresource(part, gvk, frozenset(entry["verbs"]), printer)
    for entry in entries:
        if "/" not in entry["name"]:
            yield _kind(definitions, entry, _gvk(entry, group, version), parts.get(entry["name"], {}))


def _printer(known: Mapping[_Name, Declaration], gvk: GroupVersionKind) -> Printer:
    declaration = known.get((gvk.api_version, gvk.kind))
    return CREATED_AT if declaration is None else declaration.printer


def _gvk(entry: Mapping[str, Any], group: str, version: str) -> GroupVersionKind:
    return GroupVersionKind(entry.get("group", group), entry.get("version", version), entry["kind"])


def _kind(
    definitions: Definitions, entry: Mapping[str, Any], gvk: GroupVersionKind, parts: Mapping[str, Subresource]
) -> Kind:
    resource = Resource(gvk.group, entry["name"])
    return Kind(
        resource=resource,
        gvk=gvk,
        singular=entry["singularName"],
        namespaced=entry["namespaced"],
        verbs=frozenset(entry["verbs"]),
        definition=definitions.by_kind[gvk.api_version, gvk.kind],
        definitions=definitions,
        strategy=Strategy(),
        storage=resource,
        is_stored="delete" in entry["verbs"],
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        subresources=parts,
    )


def _is_stored_elsewhere(declaration: Declaration | None) -> bool:
    return declaration is not None and declaration.stored_as is not None


def _complete(kind: Kind, declaration: Declaration, made: Mapping[_Name, Kind]) -> None:
    """Set the attributes of a kind that are in the kind's declaration."""
    kind.printer = declaration.printer
    kind.deprecation = declaration.deprecation
    stored_as = declaration.stored_as
    kind.registry_path = declaration.registry_path
    kind.stored_version = declaration.stored_version or kind.gvk.version
    stored = kind
    if stored_as is not None:
        stored = made[stored_as.api_version, stored_as.kind]
        kind.storage = stored.resource
        kind.stored_version = declaration.stored_version or stored_as.api_version.rpartition("/")[2]
        kind.is_stored = False
        kind.to_storage = stored_as.to_stored
        kind.from_storage = partial(_from_storage, kind, stored_as.from_stored)
    if declaration.strategy is not None:
        kind.strategy = copy.copy(declaration.strategy)
    elif stored_as is not None:
        kind.strategy = stored.strategy
    if "status" in kind.subresources:
        kind.strategy.has_status = True
    kind.resets = declaration.resets
    if declaration.resets is None and kind.strategy.status_keeps:
        kind.resets = keeping(kind.strategy.status_keeps)


def _from_storage(kind: Kind, convert: Callable[[Unstructured], Unstructured], obj: Object) -> Object:
    return Object(kind.resource, kind.codec.encode(convert(obj.to_dict())), obj.revision)
