"""Managed fields of kinds whose versions have different fields: each entry is compared in its own API version.

Guarantees: the entry of a manager that wrote in another API version is compared with the fields that the write changes
in that version. A field that an applier no longer applies is removed only if no manager owns it in any version. The
conversion between versions uses `Kind.translate`, which may need a webhook (`engine.conversion`). If a conversion is
missing, a caller must run the functions of this module again.

Source: structured-merge-diff `merge/update.go` (`update`, `prune`, `addBackOwnedItems`, `addBackDanglingItems`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields import field_set
from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.managedfields.managers import Entry
from ctrlmgr.engine.managedfields.merge_type import Difference
from ctrlmgr.engine.managedfields.problems import joined_problems
from ctrlmgr.engine.managedfields.schema_merge_types import Root

Translate: TypeAlias = Callable[[Unstructured, str], tuple[Root, Unstructured]]
"""A function that returns an object in another apiVersion, and that version's merge type."""


class SchemaMismatch(ValueError):
    """Raised if a converted object does not fit the schema of its new version."""


class TouchedFields(NamedTuple):
    """The fields that a write touches, in one API version of the object."""

    changed: FieldSet
    """The added and modified fields."""
    removed: FieldSet

    @property
    def all(self) -> FieldSet:
        """All fields that the write touches."""
        return field_set.union(self.changed, self.removed)


class Translation:
    """Translates between one version of a kind and its other versions."""

    def __init__(self, translate: Translate, merge_type: Root, api_version: str, known: Collection[str]) -> None:
        """Create a translator of managed fields between versions.

        `merge_type` is the merge type of `api_version`, and `known` contains all apiVersions of the kind.
        """
        self._translate = translate
        self._merge_type = merge_type
        self._api_version = api_version
        self._known = known

    def merge_types(self, live: Unstructured, entries: Iterable[Entry]) -> dict[str, Root]:
        """Return the merge type of each entry's version.

        Raises `SchemaMismatch` if the stored object does not fit such a merge type.
        """
        versions = {entry.api_version for entry in entries}.intersection(self._known)
        return {version: self._seen(live, version)[0] for version in versions}

    def differences(
        self, live: Unstructured, new: Unstructured, here: Difference, entries: Iterable[Entry]
    ) -> dict[str, Difference]:
        """Return the differences of two objects in the version of each entry.

        `here` is the difference in the translator's own version. Raises `SchemaMismatch` if an object does not fit a
        version.
        """
        found = {self._api_version: here}
        for entry in entries:
            version = entry.api_version
            if version in self._known and version not in found:
                with _during("failed to convert old object"):
                    merge_type, old = self._seen(live, version)
                with _during("failed to convert new object"):
                    there = self._seen(new, version)[1]
                found[version] = merge_type.compare(old, there)
        return found

    def pruned(self, merged: Unstructured, last: Entry, now: FieldSet, others: Iterable[Entry]) -> Unstructured:
        """Return the merged object without fields of the last apply that no manager owns now.

        A field of the last apply remains if it is in `now` or if another manager owns it. Raises `SchemaMismatch` if an
        object does not fit a version.
        """
        if last.api_version not in self._known:
            return merged
        with _during("failed to prune fields"):
            with _during("failed to convert merged object to last applied version"):
                merge_type, whole = self._seen(merged, last.api_version)
            named = merge_type.named(last.fields)
            rest = self._with_owned(whole, merge_type.remove(whole, named) or {}, last, now, others)
            with _during("failed add back dangling items: failed to convert pruned object to last applied version"):
                rest = self._moved(rest, last.api_version)[1]
            missing = field_set.difference(
                merge_type.named(merge_type.owned(whole) or {}), merge_type.named(merge_type.owned(rest) or {})
            )
            rest = merge_type.remove(whole, field_set.intersection(missing, named)) or {}
            return self._moved(rest, self._api_version)[1]

    def _with_owned(
        self, whole: Unstructured, rest: Unstructured, last: Entry, now: FieldSet, others: Iterable[Entry]
    ) -> Unstructured:
        """Return the remaining object, with all fields of `whole` that a manager owns added back."""
        for version, fields in self._by_version(last.api_version, now, others):
            with _during(f"failed add back owned items: failed to convert merged object at version {version}"):
                merge_type, whole = self._moved(whole, version)
            with _during(f"failed add back owned items: failed to convert pruned object at version {version}"):
                rest = self._moved(rest, version)[1]
            there = merge_type.named(merge_type.owned(whole) or {})
            kept = field_set.union(merge_type.named(merge_type.owned(rest) or {}), merge_type.named(fields))
            rest = merge_type.remove(whole, field_set.difference(there, kept)) or {}
        return rest

    def _by_version(self, first: str, now: FieldSet, others: Iterable[Entry]) -> Iterable[tuple[str, FieldSet]]:
        """Return the owned fields of each version, beginning with the version in which fields are pruned."""
        fields = {first: {}, self._api_version: now} if first != self._api_version else {first: now}
        for entry in others:
            if entry.api_version in self._known:
                fields[entry.api_version] = field_set.union(fields.get(entry.api_version, {}), entry.fields)
        return fields.items()

    def _seen(self, fields: Unstructured, version: str) -> tuple[Root, Unstructured]:
        """Return an object of the translator's own version in another version."""
        if version == self._api_version:
            return self._merge_type, fields
        return self._turned({**fields, "apiVersion": self._api_version}, version)

    def _moved(self, fields: Unstructured, version: str) -> tuple[Root, Unstructured]:
        """Return an object of any version in another version."""
        if version == self._api_version and fields.get("apiVersion") == version:
            return self._merge_type, fields
        return self._turned(fields, version)

    def _turned(self, fields: Unstructured, version: str) -> tuple[Root, Unstructured]:
        if fields.get("apiVersion") == version:
            return self._translate(fields, version)
        merge_type, there = self._translate(fields, version)
        if problems := joined_problems(merge_type.check(there, "")):
            raise SchemaMismatch(problems)
        return merge_type, there


@contextmanager
def _during(work: str) -> Iterator[None]:
    """Add the current step to the message of a `SchemaMismatch`."""
    try:
        yield
    except SchemaMismatch as problem:
        raise SchemaMismatch(f"{work}: {problem}") from problem
