"""The storage version migrator: stores all objects of a resource again in the current storage version.

Guarantees:
- At most one migration of a resource runs at a time. The oldest migration runs first.
- Only objects that have not changed since the migration began are written. Objects that were changed, deleted or
  replaced after the migration began are skipped.
- While a custom resource is migrated, its CustomResourceDefinition has the condition StorageMigrating. After a
  successful migration, `status.storedVersions` contains only the storage version, unless the definition was changed
  meanwhile.

Source: `pkg/controller/storageversionmigrator` (`migrationrunner.go`, `resourceversion.go`,
`storageversionmigrator.go`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.storage_version_migrator import DESCRIPTOR
from ctrlmgr.controllers.storage_version_migrator.migrated_definition import Definitions
from ctrlmgr.controllers.storage_version_migrator.migration import RUNNING, Migration, next_to_run
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.errors import (
    ApiError,
    Conflict,
    InternalError,
    RequestTimeout,
    ServiceUnavailable,
    TooManyRequests,
)
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Lister
from ctrlmgr.kinds.storagemigration.storage_version_migration import FAILED, SUCCEEDED
from ctrlmgr.manager import Controller, Result, Watch

MIGRATIONS: Final = Resource("storagemigration.k8s.io", "storageversionmigrations")
_WORKERS: Final = 5
_VERBS: Final = ("update", "patch", "list")
"""The verbs that a resource must support so that its objects can be migrated."""
_MINUTE: Final = 60 * 1_000_000
_RETRIED: Final = (InternalError, RequestTimeout, ServiceUnavailable, TooManyRequests)
"""The errors after which the migration is repeated."""
_AGAIN: Final = 5.0
"""The number of seconds after which the migrator searches again for an unknown resource."""


class Migrator:
    """Reconciles a StorageVersionMigration, whose name is the key."""

    def __init__(
        self, migrations: Lister, definitions: Lister, kinds: Kinds, event_log: EventLog, clock: Clock
    ) -> None:
        """Create a reconciler; `definitions` lists CustomResourceDefinitions, and `kinds` contains the served kinds."""
        self._migrations = migrations
        self._definitions = Definitions(definitions)
        self._kinds = kinds
        self._event_log = event_log
        self._clock = clock

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Perform the next step of a migration; raises the errors of the API if a write fails."""
        obj = self._migrations.get(key)
        if obj is None:
            return None
        migration = Migration.of(obj)
        if migration.has_ended:
            if migration.is_running:
                self._finish(migration, client)
            return None
        if migration.is_running:
            return self._advance(migration, client)
        found = next_to_run(map(Migration.of, self._migrations.list()), migration.group_resource)
        if found is not None and found.object.key == key:
            self._start(migration, client)
        return None

    def concerned(self, change: Change) -> Iterator[Key]:
        """Yield the keys of all migrations of the same resource."""
        group_resource = Migration.of(change.object).group_resource
        yield change.object.key
        for each in self._migrations.list():
            if each.key != change.object.key and Migration.of(each).group_resource == group_resource:
                yield each.key

    def _start(self, migration: Migration, client: EngineClient) -> None:
        self._definitions.mark(migration, client, self._now())
        running = migration.with_condition(RUNNING, "MigrationRunning", "The migration is running", self._now())
        client.update(running, "status")

    def _finish(self, migration: Migration, client: EngineClient) -> None:
        self._definitions.finish(migration, client, self._now())
        message = "Migration completed"
        ended = migration.with_condition(RUNNING, "MigrationCompleted", message, self._now(), is_true=False)
        client.update(ended, "status")

    def _advance(self, migration: Migration, client: EngineClient) -> Result | None:
        kind = self._kind(migration)
        if kind is None:
            created = parse_time(migration.object.metadata.creation_timestamp or "")
            if self._clock.now() < created + _MINUTE:
                return Result(_AGAIN)
            self._end(migration, FAILED, "resource does not exist in discovery", client)
        elif migration.revision:
            self._migrate(migration, kind, client)
        elif not kind.verbs.issuperset(_VERBS):
            name = f"{kind.gvk.group}/{kind.gvk.version}, Resource={kind.resource.plural}"
            words = f'resource "{name}" does not support discovery operations: [{" ".join(_VERBS)}]'
            self._end(migration, FAILED, words, client)
        else:
            revision = str(self._event_log.head().revision)
            client.update(migration.with_status(resourceVersion=revision), "status")
        return None

    def _kind(self, migration: Migration) -> Kind | None:
        """Return the preferred version of the resource to migrate; None if the resource does not exist."""
        group, plural = migration.group_resource
        versions = next((each.versions for each in self._kinds.groups if each.name == group), ())
        return next(filter(None, (self._kinds.find(group, version, plural) for version in versions)), None)

    def _migrate(self, migration: Migration, kind: Kind, client: EngineClient) -> None:
        for obj in client.list_all(kind.storage):
            if obj.revision > int(migration.revision):
                continue
            try:
                client.apply(_identity(obj, kind), DESCRIPTOR.name)
            except Conflict:
                continue  # The object was changed or deleted meanwhile, so it need not be migrated.
            except _RETRIED:
                raise
            except ApiError as error:
                self._end(migration, FAILED, f"migration encountered unhandled error: {error}", client)
                return
        self._end(migration, SUCCEEDED, "", client)

    def _end(self, migration: Migration, type_: str, message: str, client: EngineClient) -> None:
        reason = f"StorageVersionMigration{type_}"
        client.update(migration.with_condition(type_, reason, message, self._now()), "status")

    def _now(self) -> str:
        return format_time_seconds(self._clock.now())


def _identity(obj: Object, kind: Kind) -> Object:
    """Return an apply configuration that changes no field; applying it stores the object again."""
    metadata: dict[str, Any] = {"name": obj.name, "uid": obj.uid, "resourceVersion": str(obj.revision)}
    if obj.namespace:
        metadata["namespace"] = obj.namespace
    return Object.from_dict({"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata})


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    migrations, definitions = context.informers.informer(MIGRATIONS), context.informers.informer(DEFINITIONS)
    kinds = context.engine.kinds
    migrator = Migrator(migrations.lister, definitions.lister, kinds, context.event_log, context.clock)
    watches = [Watch(migrations, migrator.concerned, after_sync=True)]
    return assemble(DESCRIPTOR, context, migrator, watches, workers=_WORKERS, reads_own_writes=True)
