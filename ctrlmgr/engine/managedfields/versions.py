"""Managed fields of a kind whose versions differ in their fields: each entry is looked at in its own version.

Guarantees: what a write changes is, for a manager of another version, what it changes there; what an applier gives up
goes only if no manager has it, in whichever version. Conversion is what the kind says (`Kind.translate`) and may have
to be asked for (`engine.conversion`): everything here may be run again.

Source: structured-merge-diff `merge/update.go` (`update`, `prune`, `addBackOwnedItems`, `addBackDanglingItems`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields import field_set
from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.managedfields.managers import Entry
from ctrlmgr.engine.managedfields.shape import Difference
from ctrlmgr.engine.managedfields.shape_of import Root

Translate: TypeAlias = Callable[[Unstructured, str], tuple[Root, Unstructured]]
"""Returns an object in an apiVersion, and the shape of that."""


class Touched(NamedTuple):
    """What of an object a write touches, as one version has it."""

    changed: FieldSet
    """What was added or modified."""
    removed: FieldSet

    @property
    def all(self) -> FieldSet:
        """All of it."""
        return field_set.union(self.changed, self.removed)


class Translation:
    """The other versions of a kind, as one version sees them."""

    def __init__(self, translate: Translate, shape: Root, api_version: str, known: Collection[str]) -> None:
        """`shape` is of `api_version`; `known` are all apiVersions there are."""
        self._translate = translate
        self._shape = shape
        self._api_version = api_version
        self._known = known

    def differences(
        self, live: Unstructured, new: Unstructured, here: Difference, entries: Iterable[Entry]
    ) -> dict[str, Difference]:
        """Return what differs between two objects in the version of each entry; `here` is what does in ours."""
        found = {self._api_version: here}
        for entry in entries:
            version = entry.api_version
            if version in self._known and version not in found:
                shape, old = self._seen(live, version)
                found[version] = shape.compare(old, self._seen(new, version)[1])
        return found

    def pruned(self, merged: Unstructured, last: Entry, now: FieldSet, others: Iterable[Entry]) -> Unstructured:
        """Return what was merged without what was applied last time, is not now (`now`), and no other manager has."""
        shape, whole = self._seen(merged, last.api_version)
        named = shape.named(last.fields)
        rest: Unstructured = shape.remove(whole, named) or {}
        for version, fields in self._by_version(last.api_version, now, others):
            shape, whole = self._moved(whole, version)
            rest = self._moved(rest, version)[1]
            there = shape.named(shape.owned(whole) or {})
            kept = field_set.union(shape.named(shape.owned(rest) or {}), shape.named(fields))
            rest = shape.remove(whole, field_set.difference(there, kept)) or {}
        shape, whole = self._seen(merged, last.api_version)
        rest = self._moved(rest, last.api_version)[1]
        missing = field_set.difference(shape.named(shape.owned(whole) or {}), shape.named(shape.owned(rest) or {}))
        rest = shape.remove(whole, field_set.intersection(missing, named)) or {}
        return self._moved(rest, self._api_version)[1]

    def _by_version(self, first: str, now: FieldSet, others: Iterable[Entry]) -> Iterable[tuple[str, FieldSet]]:
        """Return what is managed in each version, first in that which was pruned."""
        fields = {first: {}, self._api_version: now} if first != self._api_version else {first: now}
        for entry in others:
            if entry.api_version in self._known:
                fields[entry.api_version] = field_set.union(fields.get(entry.api_version, {}), entry.fields)
        return fields.items()

    def _seen(self, fields: Unstructured, version: str) -> tuple[Root, Unstructured]:
        """Return an object of our version in another."""
        if version == self._api_version:
            return self._shape, fields
        return self._translate({**fields, "apiVersion": self._api_version}, version)

    def _moved(self, fields: Unstructured, version: str) -> tuple[Root, Unstructured]:
        """Return an object of any version in another."""
        if version == self._api_version and fields.get("apiVersion") == version:
            return self._shape, fields
        return self._translate(fields, version)
