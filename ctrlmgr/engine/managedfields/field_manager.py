"""The field manager of a kind: maintains metadata.managedFields, and merges applied objects.

Every create, update and patch calls `update`, so this method avoids repeated work. This implementation computes field
sets in their stored form, skips parts of an object that compare equal, and stores untouched entries unchanged. Source:
apimachinery `managedfields/internal/fieldmanager.go` and the chain of managers that it creates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields import field_set, last_applied, managers
from ctrlmgr.engine.managedfields.conflicts import Conflicts
from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.managedfields.managers import APPLY, UPDATE, Entry, Managed, Manager
from ctrlmgr.engine.managedfields.merge_type import Difference, MergeTypeError
from ctrlmgr.engine.managedfields.problems import joined_problems
from ctrlmgr.engine.managedfields.reset_fields import USUAL, Filter
from ctrlmgr.engine.managedfields.schema_merge_types import UNOWNED, Root, merge_type_of
from ctrlmgr.engine.managedfields.versioned_managed_fields import SchemaMismatch, TouchedFields, Translate, Translation
from ctrlmgr.errors import BadRequest, ConversionFailed, UnknownError
from ctrlmgr.schema.schema import Schema

BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager of the fields that an object had before its first apply, if no manager was known."""


class FieldManager:
    """Manages the fields of one kind in one version."""

    def __init__(
        self,
        schema: Schema | Root,
        api_version: str,
        *,
        kind: str = "",
        versions: Collection[str] = (),
        resets: Mapping[str, Filter] | None = None,
        translate: Translate | None = None,
        schema_changes: bool = False,
    ) -> None:
        """Create the field manager for a schema or its merge type, and an apiVersion such as `apps/v1`.

        The argument `kind` is the name of the kind; the default is the name of the schema. A merge type has no name.
        The argument `versions` contains the other apiVersions whose entries are kept; entries of unknown versions are
        dropped, as in Kubernetes. The argument `resets` contains the fields that a write to a subresource cannot
        change; the default is `reset_fields`. The argument `translate` is needed if the kind has several versions. The
        argument `schema_changes` says whether stored objects may have an earlier schema.
        """
        group, _, version = api_version.rpartition("/")
        self._merge_type = schema if isinstance(schema, Root) else merge_type_of(schema)
        self._kind = kind or ("" if isinstance(schema, Root) else schema.definition.rpartition(".")[2])
        self._gvk = f"{group}/{version}, Kind={self._kind}"
        self._api_version = api_version
        self._versions = frozenset({api_version, *versions})
        self._translation = translate and Translation(translate, self._merge_type, api_version, self._versions)
        if resets is None:
            resets = USUAL if "status" in self._merge_type.fields else {}
        self._resets = resets
        self._schema_changes = schema_changes

    def update(
        self, live: Unstructured | None, new: Unstructured, manager: str, now: str, subresource: str = ""
    ) -> Unstructured:
        """Return `new` with its metadata.managedFields.

        `live` is the stored object, or None if it does not exist; both objects have their defaults. `manager` is the
        writing manager, and `now` is the time (RFC 3339). The method never raises an error; an object that does not fit
        its schema gets no managedFields.
        """
        entries = _entries(live)
        try:
            managed = self._decode(entries, new, subresource)
            if managed or live is None:
                who = Manager(manager or "unknown", UPDATE, self._api_version, subresource)
                updated = self._update(live or {}, new, managed, who, now)
                if updated is not managed or _entries(new) != entries:
                    entries = managers.encode(updated)
            else:
                entries = []
        except (ConversionFailed, SchemaMismatch, MergeTypeError):
            entries = []  # the owners of fields are unknown from now on (UpdateNoErrors)
        except (TypeError, AttributeError):
            if next(self._merge_type.check(new, ""), None) is None:
                raise
            entries = []  # a value has another type than the schema allows; validation refuses the object later
        return _with_entries(new, entries)

    def _decode(self, live: list[Unstructured], new: Unstructured, subresource: str) -> Managed:
        """Return the managers before the update: those of the request or, without these, those of the stored object."""
        requested = new.get("metadata", {}).get("managedFields")
        if not subresource and requested is not None and requested != live:
            if managers.is_reset(requested):
                return {}
            try:
                if managed := managers.decode(requested):
                    return {
                        manager: entry._replace(fields=self._merge_type.reconciled(entry.fields))
                        for manager, entry in managed.items()
                    }
            except ValueError:
                pass
        try:
            return managers.decode(live, trusted=True)
        except ValueError:
            return {}

    def _update(self, live: Unstructured, new: Unstructured, managed: Managed, who: Manager, now: str) -> Managed:
        """Return the managers after an update; return `managed` itself if the update changed no entry."""
        managed = self._reconciled(live, managed)
        difference = self._merge_type.compare(live, new)
        added, modified, removed = self._filtered(difference, who.subresource)
        changed = field_set.union(added or {}, modified or {})
        elsewhere = self._elsewhere(live, new, difference, managed, who.subresource)
        if not changed:
            return managers.cap_updaters(self._without(managed, removed or {}, elsewhere))
        others = {manager: entry for manager, entry in managed.items() if manager != who}
        result = self._without(others, field_set.union(changed, removed or {}), elsewhere) if others else others
        before = managed.get(who)
        if before is None:
            entry = Entry(changed, self._api_version, now, is_sorted=True)
        else:
            kept = field_set.difference(before.fields, removed or {})
            fields = field_set.union(kept, changed)
            entry = Entry(fields, self._api_version, now, is_sorted=before.is_sorted)
        return managers.cap_updaters({**result, who: entry})

    def _reconciled(self, live: Unstructured, managed: Managed) -> Managed:
        """Return entries, restricted to fields of the current schemas (`reconcileManagedFieldsWithSchemaChanges`).

        Raises `SchemaMismatch` if an object does not fit the schema, even if schemas never change.
        """
        if not live:
            return managed
        merge_types = {self._api_version: self._merge_type}
        if self._translation is not None:
            merge_types |= self._translation.merge_types(live, managed.values())
        if not self._schema_changes:
            return managed
        return {manager: _reconciled(entry, merge_types.get(entry.api_version)) for manager, entry in managed.items()}

    def _filtered(self, difference: Difference, subresource: str) -> Difference:
        reset = self._resets.get(subresource)
        if reset is None:
            return difference
        added, modified, removed = difference
        return (added and reset(added), modified and reset(modified), removed and reset(removed))

    def _elsewhere(
        self, live: Unstructured, new: Unstructured, here: Difference, managed: Managed, subresource: str
    ) -> Mapping[str, TouchedFields] | None:
        """Return the fields that a write changes and removes, by version.

        The method returns None if the fields are equal in all versions.
        """
        if self._translation is None or not live:
            return None
        found = self._translation.differences(live, new, here, managed.values())
        filtered = {version: self._filtered(difference, subresource) for version, difference in found.items()}
        return {
            version: TouchedFields(field_set.union(added or {}, modified or {}), removed or {})
            for version, (added, modified, removed) in filtered.items()
        }

    def _without(
        self, managed: Managed, fields: FieldSet, elsewhere: Mapping[str, TouchedFields] | None = None
    ) -> Managed:
        """Return the managers' entries without `fields`. Entries that are empty or of an unknown version are dropped.

        If `elsewhere` is given, the function ignores `fields`, and removes from each entry the fields that the write
        touches in the entry's version.
        """
        result = {}
        for manager, entry in managed.items():
            if elsewhere is not None:
                fields = elsewhere[entry.api_version].all if entry.api_version in elsewhere else {}
            rest = field_set.difference(entry.fields, fields)
            if rest and entry.api_version in self._versions:
                result[manager] = entry if rest is entry.fields else entry._replace(fields=rest, raw=None)
        if len(result) == len(managed) and all(result[manager] is entry for manager, entry in managed.items()):
            return managed
        return result

    def apply(
        self,
        live: Unstructured | None,
        applied: Unstructured,
        manager: str,
        now: str,
        *,
        force: bool,
        subresource: str = "",
    ) -> Unstructured:
        """Return `live` merged with the applied object, with the new metadata.managedFields.

        The argument `applied` is the decoded body of the request, without pruning and without defaults. After that, the
        codec must read the merged object, and then defaults must be set. A field that `manager` applied earlier and
        omits now is removed, if no other manager owns the field.

        Raises `ApplyConflict` if the apply would change fields of other managers and `force` is not set. Raises
        `BadRequest` if the body has another kind or contains managedFields. Raises `UnknownError` if the body or the
        stored object does not fit the schema.
        """
        self._check_kind(applied)
        try:
            return self._laid_over(live, applied, manager, now, force=force, subresource=subresource)
        except MergeTypeError as reason:
            raise self._untyped(
                "live", live or {}, joined_problems(self._merge_type.check(live, "")) or str(reason)
            ) from reason
        except SchemaMismatch as reason:
            raise UnknownError(str(reason)) from reason

    def _laid_over(
        self,
        live: Unstructured | None,
        applied: Unstructured,
        manager: str,
        now: str,
        *,
        force: bool,
        subresource: str,
    ) -> Unstructured:
        try:
            managed = managers.decode(_entries(live), trusted=True)
        except ValueError as reason:
            raise UnknownError(f"failed to decode managed fields: {reason}") from reason
        base = {} if live is None else _with_entries(live, [])
        if not managed and live is not None:
            first = Manager(BEFORE_FIRST_APPLY, UPDATE, self._api_version, subresource)
            managed = self._update({}, base, {}, first, now)
        who = Manager(manager, APPLY, "", subresource)
        try:
            result, managed = self._apply(base, applied, managed, who, force=force)
        except Conflicts as conflicts:
            if manager != last_applied.KUBECTL:
                raise conflicts.refusal() from None
            remaining = last_applied.remaining(conflicts, base, self._merge_type, self._api_version)
            if remaining is not None:
                raise remaining.refusal() from None
            result, managed = self._apply(base, applied, managed, who, force=True)
        if result is not base and who in managed:
            managed = {**managed, who: managed[who]._replace(time=now, raw=None)}
        if manager == last_applied.KUBECTL:
            result = last_applied.refreshed(result, applied)
        return _with_entries(result, managers.encode(managed))

    def _check_kind(self, applied: Unstructured) -> None:
        api_version, kind = applied.get("apiVersion") or "", applied.get("kind") or ""
        if api_version != self._api_version or kind != self._kind:
            group, _, version = str(api_version).rpartition("/")
            raise BadRequest(f"invalid object type: {group}/{version}, Kind={kind}")
        metadata = applied.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
            raise BadRequest("metadata.managedFields must be nil")
        if problems := joined_problems(self._merge_type.check(applied, "")):
            raise self._untyped("patch", applied, problems)

    def _untyped(self, what: str, fields: Unstructured, problems: str) -> UnknownError:
        metadata = fields.get("metadata")
        name = metadata if isinstance(metadata, dict) else {}
        about = f"{name.get('namespace') or ''}/{name.get('name') or ''}; {self._gvk}"
        return UnknownError(f"failed to create typed {what} object ({about}): {problems}")

    def _apply(
        self, live: Unstructured, applied: Unstructured, managed: Managed, who: Manager, *, force: bool
    ) -> tuple[Unstructured, Managed]:
        """Return the merged object (`live` itself if no field changed) and the managers.

        Raises Conflicts if other managers own changed fields.
        """
        managed = self._reconciled(live, managed)
        reset = self._resets.get(who.subresource)
        owned = self._merge_type.owned(applied) or {}
        owned = reset(owned) if reset else owned
        fields = field_set.difference(owned, UNOWNED)
        before = managed.get(who)
        merged: Unstructured = self._merge_type.merge(live, applied)
        if before is not None and field_set.difference(before.fields, fields):
            kept = [entry for manager, entry in managed.items() if manager != who]
            if self._translation is not None:
                merged = self._translation.pruned(merged, before, owned, kept)
            else:
                merged = self._pruned(merged, before.fields, [owned, *(entry.fields for entry in kept)])
        difference = self._merge_type.compare(live, merged)
        added, modified, removed = self._filtered(difference, who.subresource)
        others = {manager: entry for manager, entry in managed.items() if manager != who}
        changed = field_set.union(added or {}, modified or {})
        elsewhere = self._elsewhere(live, merged, difference, others, who.subresource)
        lost = {
            manager: field_set.intersection(entry.fields, _changed(elsewhere, entry, changed))
            for manager, entry in others.items()
        }
        lost = {manager: paths for manager, paths in lost.items() if paths}
        if lost and not force:
            raise Conflicts.of(lost)
        result = self._without(others, field_set.union(changed, removed or {}), elsewhere)
        if fields:
            unchanged = before is not None and before.fields == fields and before.api_version == self._api_version
            entry = before if unchanged else Entry(fields, self._api_version, before.time if before else None)
            result = {**result, who: entry}  # type: ignore[dict-item]  # `before` is no None here
        return (live if merged == live else merged), result

    def _pruned(self, merged: Unstructured, last: FieldSet, owned: list[FieldSet]) -> Unstructured:
        """Return the merged object without the fields of the last apply that the new apply omits and no manager owns.

        The function removes all fields of the last apply, together with all fields below them (smd's prune). After
        that, the method adds back fields that a manager owns (addBackOwnedItems), and fields that the applier never
        owned (addBackDanglingItems).
        """
        merge_type = self._merge_type
        last = merge_type.named(last)
        everything = merge_type.named(merge_type.owned(merged) or {})
        wanted: FieldSet = {}
        for fields in owned:
            wanted = field_set.union(wanted, merge_type.named(fields))
        rest = merge_type.named(merge_type.owned(merge_type.remove(merged, last) or {}) or {})
        gone = field_set.difference(everything, field_set.union(rest, wanted))
        rest = merge_type.named(merge_type.owned(merge_type.remove(merged, gone) or {}) or {})
        gone = field_set.intersection(field_set.difference(everything, rest), last)
        pruned: Unstructured = merge_type.remove(merged, gone)
        return pruned


def _reconciled(entry: Entry, merge_type: Root | None) -> Entry:
    """Return an entry without fields that are inside atomic values."""
    fields = entry.fields if merge_type is None else merge_type.reconciled(entry.fields)
    return entry if fields == entry.fields else entry._replace(fields=fields, raw=None)


def _changed(elsewhere: Mapping[str, TouchedFields] | None, entry: Entry, changed: FieldSet) -> FieldSet:
    """Return the fields that a write changes, in the API version of an entry."""
    if elsewhere is None:
        return changed
    return elsewhere[entry.api_version].changed if entry.api_version in elsewhere else {}


def _entries(fields: Unstructured | None) -> list[Unstructured]:
    metadata = fields and fields.get("metadata")
    return (metadata and metadata.get("managedFields")) or []


def _with_entries(fields: Unstructured, entries: list[Unstructured]) -> Unstructured:
    """Return a copy of an object with the given managedFields, or without managedFields."""
    metadata = dict(fields.get("metadata") or {})
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)
    return {**fields, "metadata": metadata}
