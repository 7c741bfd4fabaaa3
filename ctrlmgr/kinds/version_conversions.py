"""Provides the conversions between the served versions of a built-in kind, because field management needs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.managedfields.schema_merge_types import Root


def connect(kinds: Iterable[Kind]) -> None:
    """Set `Kind.translate` for kinds with several versions; all versions of a kind must have the same stored kind."""
    stored: dict[Resource, dict[str, Kind]] = defaultdict(dict)
    for kind in kinds:
        stored[kind.storage][kind.gvk.api_version] = kind
    for versions in stored.values():
        if len(versions) > 1:
            for kind in versions.values():
                kind.translate = partial(_translated, versions)


def _translated(versions: Mapping[str, Kind], fields: Unstructured, api_version: str) -> tuple[Root, Unstructured]:
    """Convert an object to another version; return the converted object and the structure of that version."""
    source, target = versions[fields["apiVersion"]], versions[api_version]
    if source is target:
        return target.merge_type, fields
    read = source.codec.read(fields).fields
    stored = read if source.to_storage is None else source.to_storage(read)
    codec = next(kind.codec for kind in versions.values() if kind.to_storage is None)
    obj = Object(source.storage, codec.encode(stored))
    return target.merge_type, (obj if target.from_storage is None else target.from_storage(obj)).to_dict()
