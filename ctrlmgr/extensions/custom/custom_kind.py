"""A custom kind: one version of a CustomResourceDefinition as a `Kind` of the engine.

Guarantees: only the needed parts of a CustomResourceDefinition are decoded. The schemas of the CustomResourceDefinition
are compiled on the first read or write of an object, or earlier by `prepare`, which can run outside the event loop. A
kind never changes; a changed CustomResourceDefinition results in new kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import GroupVersionKind, Kind, Subresource
from ctrlmgr.engine.managedfields.reset_fields import METADATA, Filter, keeping
from ctrlmgr.engine.managedfields.schema_merge_types import Root
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import Column, Fields, Printer
from ctrlmgr.extensions.custom.custom_codec import CustomCodec
from ctrlmgr.extensions.custom.custom_conversion import Reader, Versions
from ctrlmgr.extensions.custom.custom_scaling import CustomScaling
from ctrlmgr.extensions.custom.custom_strategy import CustomStrategy
from ctrlmgr.extensions.custom.openapi import Described, definition_name
from ctrlmgr.extensions.definition import Definition, Version, parse
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import Schema

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The verbs of custom objects, in the order in which discovery lists them."""
VERBS_OF_TERMINATING = ("delete", "deletecollection", "get", "list", "watch")
"""The verbs that discovery lists while the CustomResourceDefinition is being deleted."""

_PART_VERBS = frozenset({"get", "patch", "update"})
_SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_NAME = Column("Name", "string", "name", "The name that is unique within the namespace.")
_RESETS: Mapping[bool, Mapping[str, Filter]] = {
    False: {},
    True: keeping(METADATA),
}


class _Version(msgspec.Struct, rename="camel", omit_defaults=True):
    """A version of a CustomResourceDefinition, without its schema."""

    name: str
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    subresources: dict[str, Any] | None = None
    additional_printer_columns: list[dict[str, Any]] | None = None
    selectable_fields: list[dict[str, Any]] | None = None


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    group: str
    names: dict[str, Any]
    scope: str
    versions: list[_Version]
    conversion: dict[str, Any] | None = None
    preserve_unknown_fields: bool = False


class _Outline(msgspec.Struct, omit_defaults=True):
    """A CustomResourceDefinition without the schemas, which are its largest part."""

    metadata: dict[str, Any]
    spec: _Spec
    status: dict[str, Any] | None = None


_decode_outline = msgspec.json.Decoder(_Outline).decode


@dataclass(eq=False, kw_only=True)
class CustomKind(Kind):
    """One version of a custom kind."""

    custom_codec: CustomCodec
    versions_of: Versions

    def prepare(self) -> None:
        """Decode the CustomResourceDefinition, and compile the schemas of this version and of the stored version."""
        if not self.is_prepared:
            self.versions_of.prepare(self.gvk.version)
            self.is_prepared = True

    @cached_property
    def codec(self) -> CustomCodec:
        """The codec of this version."""
        return self.custom_codec

    @cached_property
    def merge_type(self) -> Root:
        """The schema in the form that field management uses; created on first use."""
        return self.versions_of.merge_type(self.gvk.version, self.definitions)

    @property
    def strategic(self) -> Schema | None:
        """The schema of strategic merge patches: None, because custom kinds accept no such patches."""
        return None


def outline_of(obj: Object) -> Definition:
    """Return a stored CustomResourceDefinition, decoded without its schemas."""
    return parse(msgspec.to_builtins(_decode_outline(obj.body)))


def custom_kinds(obj: Object, definitions: Definitions) -> list[CustomKind]:
    """Return one kind for each served or stored version of a CustomResourceDefinition whose names are accepted.

    The argument `definitions` contains the OpenAPI definitions of Kubernetes' built-in kinds.
    """
    definition = outline_of(obj)
    versions = Versions(obj, definition)
    return [
        _kind(definition, version, versions, definitions)
        for version in definition.versions.values()
        if version.served or version.storage
    ]


def _kind(definition: Definition, version: Version, versions: Versions, definitions: Definitions) -> CustomKind:
    accepted, group = definition.accepted, definition.group
    resource = Resource(group, accepted.plural)
    gvk = GroupVersionKind(group, version.name, accepted.kind)
    reader = Reader(versions, resource, version.name)
    return CustomKind(
        resource=resource,
        gvk=gvk,
        singular=accepted.singular,
        namespaced=definition.namespaced,
        verbs=frozenset(VERBS),
        definition=definition_name(*gvk),
        definitions=definitions,
        strategy=CustomStrategy(definition.name, gvk.kind, versions.version(version.name), reader),
        storage=resource,
        to_storage=versions.to_stored,
        from_storage=reader,
        short_names=accepted.short_names,
        categories=accepted.categories,
        subresources={part.name: part for part in _subresources(gvk, version)},
        printer=_printer(version),
        resets=_RESETS[version.has_status],
        deprecation=definition.deprecation(version) or "",
        stored_version=definition.storage.name,
        converts_last=True,
        calls_out=versions.calls_out,
        translate=partial(_translated, versions, definitions) if len(definition.versions) > 1 else None,
        versions=frozenset(f"{group}/{name}" for name in definition.versions),
        scaling=CustomScaling(definition, version.scale) if version.scale is not None else None,
        patches=_PATCHES,
        listed_verbs=VERBS_OF_TERMINATING if definition.has_condition("Terminating") else VERBS,
        document=_document(definition, version, versions),
        list_kind=accepted.list_kind,
        is_served=version.served,
        is_stored=version.storage,
        is_prepared=False,
        custom_codec=versions.codec(version.name),
        versions_of=versions,
    )


def _translated(
    versions: Versions, definitions: Definitions, fields: Unstructured, api_version: str
) -> tuple[Root, Unstructured]:
    """Return an object in another version, and the merge type of that version."""
    name = api_version.rpartition("/")[2]
    return versions.merge_type(name, definitions), versions.moved(dict(fields), name)


def _subresources(gvk: GroupVersionKind, version: Version) -> Iterator[Subresource]:
    if version.has_status:
        yield Subresource("status", gvk, _PART_VERBS)
    if version.scale is not None:
        yield Subresource("scale", _SCALE, _PART_VERBS)


def _printer(version: Version) -> Printer:
    columns = [_NAME]
    columns += [Column(each.name, each.type, each.format, each.description, each.priority) for each in version.columns]

    def row(fields: Fields, ages: Ages) -> Iterable[Any]:
        return version.cells(fields, ages.since)

    return Printer(columns, row)


def _document(definition: Definition, version: Version, versions: Versions) -> Described:
    names = definition.accepted
    parts = [name for name, has in (("status", version.has_status), ("scale", version.scale is not None)) if has]
    return Described(
        definition.group,
        version.name,
        names.kind,
        names.list_kind,
        names.plural,
        definition.namespaced,
        lambda: versions.raw_schema(version.name),
        parts,
        [field.name for field in version.selectable],
    )
