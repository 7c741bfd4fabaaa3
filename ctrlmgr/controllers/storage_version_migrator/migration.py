"""Decides which StorageVersionMigration of a resource runs, and how the status of a migration changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, at
from ctrlmgr.kinds.storagemigration.storage_version_migration import FAILED, SUCCEEDED, condition_is_true

RUNNING: Final = "Running"


class Migration(NamedTuple):
    """A StorageVersionMigration, and the fields on which its progress depends."""

    object: Object
    fields: Unstructured

    @classmethod
    def of(cls, obj: Object) -> Migration:
        """Decode a StorageVersionMigration."""
        return cls(obj, obj.to_dict())

    @property
    def group_resource(self) -> tuple[str, str]:
        """The group and the plural of the resource to migrate."""
        group, resource = (at(self.fields, "spec", "resource", name) or "" for name in ("group", "resource"))
        return group, resource

    @property
    def revision(self) -> str:
        """The resourceVersion up to which objects are migrated; empty if it is not known yet."""
        return at(self.fields, "status", "resourceVersion") or ""

    @property
    def is_running(self) -> bool:
        """Return whether the condition Running is true."""
        return condition_is_true(self._status, RUNNING)

    @property
    def has_succeeded(self) -> bool:
        """Return whether all objects were migrated."""
        return condition_is_true(self._status, SUCCEEDED)

    @property
    def has_ended(self) -> bool:
        """Return whether the migration has succeeded or failed."""
        return self.has_succeeded or condition_is_true(self._status, FAILED)

    @property
    def _status(self) -> Mapping[str, Any]:
        return self.fields.get("status") or {}

    def with_status(self, **changes: Any) -> Object:
        """Return the object with changed fields of the status."""
        fields = {**self.fields, "status": {**self._status, **changes}}
        return Object.from_dict(fields).at(self.object.revision)

    def with_condition(self, type_: str, reason: str, message: str, now: str, *, is_true: bool = True) -> Object:
        """Return the object with a condition, which replaces the condition of the same type."""
        generation = self.fields["metadata"].get("generation")
        condition = {
            "type": type_,
            "status": "True" if is_true else "False",
            **({"observedGeneration": generation} if generation and not is_true else {}),
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        old = self._status.get("conditions") or ()
        if any(each.get("type") == type_ for each in old):
            return self.with_status(conditions=[condition if each.get("type") == type_ else each for each in old])
        return self.with_status(conditions=[*old, condition])


def next_to_run(migrations: Iterable[Migration], group_resource: tuple[str, str]) -> Migration | None:
    """Return the oldest migration of a resource that has not started.

    The result is None if a migration of the resource is running.
    """
    same = [each for each in migrations if each.group_resource == group_resource and not each.has_ended]
    if any(each.is_running for each in same):
        return None
    return min(same, key=lambda each: (each.object.metadata.creation_timestamp or "", each.object.name), default=None)
