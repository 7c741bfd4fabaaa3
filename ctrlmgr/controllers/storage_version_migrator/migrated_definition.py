"""Writes the condition StorageMigrating and the stored versions of the CustomResourceDefinition that is migrated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.storage_version_migrator.migration import Migration
from ctrlmgr.informer import Lister

MANAGER: Final = "migration-runner-controller"
"""The field manager of the writes."""
_MIGRATING: Final = "StorageMigrating"


class Definitions:
    """The CustomResourceDefinitions of migrated resources."""

    def __init__(self, definitions: Lister) -> None:
        """Create an instance that reads CustomResourceDefinitions from a lister."""
        self._definitions = definitions

    def mark(self, migration: Migration, client: EngineClient, now: str) -> None:
        """Set the condition StorageMigrating; raises `Conflict` if the definition has changed since it was read."""
        if (found := self._of(migration)) is not None:
            message = f"Migration {migration.object.name} is running"
            _apply(found, _condition(found, "True", "MigrationRunning", message, now), {}, client)

    def finish(self, migration: Migration, client: EngineClient, now: str) -> None:
        """Write the outcome of the migration and, if it succeeded, the stored versions.

        The stored versions are kept if the definition was changed during the migration. Raises `Conflict` if the
        definition has changed since it was read.
        """
        found = self._of(migration)
        if found is None:
            return
        fields = found.to_dict()
        is_same = _marked_generation(fields) == fields["metadata"].get("generation")
        reason, message = "MigrationFailed", "The migration has failed"
        if migration.has_succeeded:
            reason = "MigrationSucceeded"
            message = "The migration has succeeded and the stored versions have been updated"
            if not is_same:
                message = (
                    "The migration has succeeded but the stored versions have not been updated due to a generation "
                    "mismatch"
                )
        stored = {"storedVersions": [_storage_version(fields)]} if is_same else {}
        _apply(found, _condition(found, "False", reason, message, now), stored, client)

    def _of(self, migration: Migration) -> Object | None:
        group, plural = migration.group_resource
        return self._definitions.get(Key("", f"{plural}.{group}"))


def _condition(definition: Object, status: str, reason: str, message: str, now: str) -> dict[str, Any]:
    generation = definition.to_dict()["metadata"].get("generation")
    return {
        "type": _MIGRATING,
        "status": status,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }


def _apply(definition: Object, condition: Mapping[str, Any], more: Mapping[str, Any], client: EngineClient) -> None:
    fields = definition.to_dict()
    metadata = {"name": definition.name, "resourceVersion": str(definition.revision)}
    head = {"apiVersion": fields["apiVersion"], "kind": fields["kind"], "metadata": metadata}
    status = {"conditions": [condition], **more}
    client.apply(Object.from_dict({**head, "status": status}), MANAGER, force=True, subresource="status")


def _marked_generation(fields: Mapping[str, Any]) -> Any:
    conditions = (fields.get("status") or {}).get("conditions") or ()
    marked = [each.get("observedGeneration") for each in conditions if each.get("type") == _MIGRATING]
    return marked[0] if marked else None


def _storage_version(fields: Mapping[str, Any]) -> str:
    versions = fields["spec"]["versions"]
    names: list[str] = [each["name"] for each in versions if each.get("storage")]
    return names[0]
