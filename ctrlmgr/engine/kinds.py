"""All kinds there are, by every name that they go by.

Guarantees:
- The built-in kinds are those that Kubernetes 1.36 serves, with its verbs, short names, categories and subresources,
  from the discovery documents shipped with this package.
- Each kind with a status subresource has a strategy that knows so (`has_status`), and shares it with no other kind.
- Kinds may be added later; whoever looks a kind up finds it from then on.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS, Resource
from ctrlmgr.engine.kind import GroupVersionKind, Kind, Subresource
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds import STRATEGIES
from ctrlmgr.kinds.conversions import CONVERSIONS, Conversion
from ctrlmgr.schema import structure
from ctrlmgr.schema.codec import Codec
from ctrlmgr.schema.schema import Definitions


class Group(NamedTuple):
    """A group of kinds, as discovery lists it; the core group's name is empty."""

    name: str
    versions: tuple[str, ...]
    """Its versions, the preferred one first."""


_STORED_AS: Mapping[tuple[str, str], tuple[tuple[str, str], Resource]] = {
    ("autoscaling/v1", "HorizontalPodAutoscaler"): (
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        Resource("autoscaling", "horizontalpodautoscalers"),
    ),
    ("events.k8s.io/v1", "Event"): (("v1", "Event"), EVENTS),
}
"""The kinds that are stored as another one: that one, and its resource."""


class Kinds:
    """The registry of kinds."""

    def __init__(self, definitions: Definitions) -> None:
        """Start with none."""
        self.definitions = definitions
        self.groups: Sequence[Group] = ()
        """The groups in discovery's order, the core group first."""
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._by_gvk: dict[GroupVersionKind, Kind] = {}
        self._stored: dict[Resource, Kind] = {}

    @classmethod
    def builtin(cls, strategies: Mapping[str, Strategy] | None = None) -> Kinds:
        """Make a registry of the built-in kinds; `strategies` by `apiVersion/Kind`, by default all there are."""
        strategies = STRATEGIES if strategies is None else strategies
        kinds = cls(Definitions.builtin())
        kinds.groups = _groups()
        made: dict[str, Strategy] = {}
        for group in kinds.groups:
            for version in group.versions:
                for kind in _discovered(kinds.definitions, group.name, version):
                    _give_strategy(kind, strategies, made)
                    kinds.add(kind)
        return kinds

    def add(self, kind: Kind) -> None:
        """Register a kind, instead of the one of the same name if there is one."""
        self._by_path[kind.resource.group, kind.gvk.version, kind.resource.plural] = kind
        self._by_gvk[kind.gvk] = kind
        if kind.to_storage is None and "delete" in kind.verbs:
            self._stored[kind.storage] = kind

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind that is served at a path."""
        return self._by_path.get((group, version, plural))

    def by_gvk(self, gvk: GroupVersionKind) -> Kind | None:
        """Return a kind by its full name, if it has a path of its own."""
        return self._by_gvk.get(gvk)

    def stored(self, resource: Resource) -> Kind | None:
        """Return the kind as which objects of `resource` are in the log; None for reviews and the like."""
        return self._stored.get(resource)

    def codec_for(self, gvk: GroupVersionKind) -> Codec:
        """Return the codec of any kind of body, also of what is never stored; raises KeyError for what nobody knows."""
        definition = self.definitions.by_kind[gvk.api_version, gvk.kind]
        return self.definitions.codec(gvk.kind, gvk.api_version, definition)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_path.values())


def _groups() -> tuple[Group, ...]:
    listed = structure.discovery()["/apis"]["groups"]
    named = (Group(each["name"], tuple(version["version"] for version in each["versions"])) for each in listed)
    return (Group("", ("v1",)), *named)


def _discovered(definitions: Definitions, group: str, version: str) -> Iterator[Kind]:
    """Make the kinds of a group's version, without their strategies."""
    entries = structure.discovery()[f"/apis/{group}/{version}" if group else f"/api/{version}"]["resources"]
    parts: dict[str, dict[str, Subresource]] = {}
    for entry in entries:
        plural, slash, part = entry["name"].partition("/")
        if slash:
            parts.setdefault(plural, {})[part] = Subresource(
                part, _gvk(entry, group, version), frozenset(entry["verbs"])
            )
    for entry in entries:
        if "/" not in entry["name"]:
            yield _kind(definitions, entry, _gvk(entry, group, version), parts.get(entry["name"], {}))


def _gvk(entry: Mapping[str, Any], group: str, version: str) -> GroupVersionKind:
    return GroupVersionKind(entry.get("group", group), entry.get("version", version), entry["kind"])


def _kind(
    definitions: Definitions, entry: Mapping[str, Any], gvk: GroupVersionKind, parts: Mapping[str, Subresource]
) -> Kind:
    resource = Resource(gvk.group, entry["name"])
    name = gvk.api_version, gvk.kind
    kind = Kind(
        resource=resource,
        gvk=gvk,
        singular=entry["singularName"],
        namespaced=entry["namespaced"],
        verbs=frozenset(entry["verbs"]),
        definition=definitions.by_kind[name],
        definitions=definitions,
        strategy=Strategy(),
        storage=_STORED_AS[name][1] if name in _STORED_AS else resource,
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        subresources=parts,
    )
    if conversion := CONVERSIONS.get(name):
        kind.to_storage = conversion.to_stored
        kind.from_storage = partial(_from_storage, kind, conversion)
    return kind


def _from_storage(kind: Kind, conversion: Conversion, obj: Object) -> Object:
    return Object(kind.resource, kind.codec.encode(conversion.from_stored(obj.to_dict())), obj.revision)


def _give_strategy(kind: Kind, strategies: Mapping[str, Strategy], made: dict[str, Strategy]) -> None:
    """Give a kind its own strategy, or, if there is none, the one of the kind it is stored as."""
    own = kind.gvk.api_version, kind.gvk.kind
    name = "/".join(own)
    if name not in strategies and own in _STORED_AS:
        name = "/".join(_STORED_AS[own][0])
    if name not in made:
        made[name] = copy.copy(strategies[name]) if name in strategies else Strategy()
    kind.strategy = made[name]
    if "status" in kind.subresources:
        kind.strategy.has_status = True
