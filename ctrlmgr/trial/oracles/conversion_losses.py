"""Oracle `conversion-loss`: a write through one version of a custom kind loses fields of another version.

A write is suspicious if it was sent in another version than the stored one, and removed a field that the schema of the
sent version does not declare. The author could not know this field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.extensions.definition import Definition, parse
from ctrlmgr.extensions.structural import Raw, single_items
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog, Step, named, written_by

ORACLE = "conversion-loss"


def conversion_losses(log: KeptLog) -> list[Finding]:
    """Return the custom resources that lost fields in a write through another version, once per resource."""
    definitions = _definitions(log)
    found = []
    for place, steps in written_by(log.run):
        definition = definitions.get(place.resource)
        if definition is not None and len(definition.versions) > 1:
            found += [each for step in steps for each in _losses(definition, step)][:1]
    return found


def _definitions(log: KeptLog) -> dict[Resource, Definition]:
    """Return the last state of each CustomResourceDefinition, by the resource that it defines."""
    events = [each.object for each in log.events if each.resource == DEFINITIONS]
    return {Resource.parse(obj.name): parse(msgspec.json.decode(obj.body)) for obj in events}


def _losses(definition: Definition, step: Step) -> Iterator[Finding]:
    event, before = step
    if before is None or before.uid != event.object.uid:
        return
    old, new = msgspec.json.decode(before.body), msgspec.json.decode(event.object.body)
    for version in _sent_versions(before, event.object):
        sent = definition.versions.get(version)
        if sent is None or sent.raw_schema is None or f"{definition.group}/{version}" == new["apiVersion"]:
            continue
        for path in _lost("", _content(old), _content(new), sent.raw_schema):
            message = f"{named(event.object)} lost {path} in a write of version {version}, which has no such field."
            yield Finding(ORACLE, message, named(event.object), event.revision)


def _content(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in fields.items() if name not in ("metadata", "kind", "apiVersion")}


def _sent_versions(before: Object, after: Object) -> set[str]:
    """Return the versions of the entries in `metadata.managedFields` that a write added or changed."""
    old, new = _entries(before), _entries(after)
    return {each["apiVersion"].rpartition("/")[2] for each in new if each not in old and each.get("apiVersion")}


def _entries(obj: Object) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = msgspec.json.decode(obj.body)["metadata"].get("managedFields") or []
    return entries


def _lost(path: str, old: Any, new: Any, raw: Raw) -> Iterator[str]:
    """Yield the paths that `new` no longer has, and that a schema does not declare."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in old.items():
            below, place = _below(raw, name), f"{path}.{name}".removeprefix(".")
            if name not in new:
                yield from () if below is not None else (place,)
            else:
                yield from _lost(place, value, new[name], below or {"x-kubernetes-preserve-unknown-fields": True})
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (value, other) in enumerate(zip(old, new, strict=True)):
            yield from _lost(f"{path}[{at}]", value, other, single_items(raw) or raw)


def _below(raw: Raw, name: str) -> Raw | None:
    """Return the schema of a field; None if it is not declared and not kept."""
    declared: Raw | None = (raw.get("properties") or {}).get(name)
    others = raw.get("additionalProperties")
    if declared is None and others:
        return others if isinstance(others, dict) else {"x-kubernetes-preserve-unknown-fields": True}
    return declared if declared is not None or not raw.get("x-kubernetes-preserve-unknown-fields") else raw
