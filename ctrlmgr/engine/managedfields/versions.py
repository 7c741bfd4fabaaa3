"""Managed fields of a kind whose versions differ in their fields: each entry is looked at in its own version.

Guarantees: what a write changes is, for a manager of another version, what it changes there; what an applier gives up
goes only if no manager has it, in whichever version. Conversion is what the kind says (`Kind.translate`) and may have
to be asked for (`engine.conversion`): everything here may be run again.

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
from ctrlmgr.engine.managedfields.problems import told
from ctrlmgr.engine.managedfields.shape import Difference
from ctrlmgr.engine.managedfields.shape_of import Root

Translate: TypeAlias = Callable[[Unstructured, str], tuple[Root, Unstructured]]
"""Returns an object in an apiVersion, and the shape of that."""


class Misfit(ValueError):
    """An object, turned into another version, is none by that version's schema."""


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

    def shapes(self, live: Unstructured, entries: Iterable[Entry]) -> dict[str, Root]:
        """Return the shape of each entry's version; raises `Misfit` if a stored object does not have it."""
        versions = {entry.api_version for entry in entries}.intersection(self._known)
        return {version: self._seen(live, version)[0] for version in versions}

    def differences(
        self, live: Unstructured, new: Unstructured, here: Difference, entries: Iterable[Entry]
    ) -> dict[str, Difference]:
        """Return what differs between two objects in the version of each entry; `here` is what does in ours.

        Raises `Misfit`.
        """
        found = {self._api_version: here}
        for entry in entries:
            version = entry.api_version
            if version in self._known and version not in found:
                with _during("failed to convert old object"):
                    shape, old = self._seen(live, version)
                with _during("failed to convert new object"):
                    there = self._seen(new, version)[1]
                found[version] = shape.compare(old, there)
        return found

    def pruned(self, merged: Unstructured, last: Entry, now: FieldSet, others: Iterable[Entry]) -> Unstructured:
        """Return what was merged without what was applied last time, is not now (`now`), and no other manager has.

        Raises `Misfit`.
        """
        if last.api_version not in self._known:
            return merged
        with _during("failed to prune fields"):
            with _during("failed to convert merged object to last applied version"):
                shape, whole = self._seen(merged, last.api_version)
            named = shape.named(last.fields)
            rest = self._with_owned(whole, shape.remove(whole, named) or {}, last, now, others)
            with _during("failed add back dangling items: failed to convert pruned object to last applied version"):
                rest = self._moved(rest, last.api_version)[1]
            missing = field_set.difference(shape.named(shape.owned(whole) or {}), shape.named(shape.owned(rest) or {}))
            rest = shape.remove(whole, field_set.intersection(missing, named)) or {}
            return self._moved(rest, self._api_version)[1]

    def _with_owned(
        self, whole: Unstructured, rest: Unstructured, last: Entry, now: FieldSet, others: Iterable[Entry]
    ) -> Unstructured:
        """Return what is left of an object together with what any manager has of the whole of it."""
        for version, fields in self._by_version(last.api_version, now, others):
            with _during(f"failed add back owned items: failed to convert merged object at version {version}"):
                shape, whole = self._moved(whole, version)
            with _during(f"failed add back owned items: failed to convert pruned object at version {version}"):
                rest = self._moved(rest, version)[1]
            there = shape.named(shape.owned(whole) or {})
            kept = field_set.union(shape.named(shape.owned(rest) or {}), shape.named(fields))
            rest = shape.remove(whole, field_set.difference(there, kept)) or {}
        return rest

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
        return self._turned({**fields, "apiVersion": self._api_version}, version)

    def _moved(self, fields: Unstructured, version: str) -> tuple[Root, Unstructured]:
        """Return an object of any version in another."""
        if version == self._api_version and fields.get("apiVersion") == version:
            return self._shape, fields
        return self._turned(fields, version)

    def _turned(self, fields: Unstructured, version: str) -> tuple[Root, Unstructured]:
        if fields.get("apiVersion") == version:
            return self._translate(fields, version)
        shape, there = self._translate(fields, version)
        if problems := told(shape.check(there, "")):
            raise Misfit(problems)
        return shape, there


@contextmanager
def _during(work: str) -> Iterator[None]:
    """Say of a `Misfit` what was being done."""
    try:
        yield
    except Misfit as problem:
        raise Misfit(f"{work}: {problem}") from problem
