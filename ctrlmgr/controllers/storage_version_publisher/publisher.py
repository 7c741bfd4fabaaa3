"""Publishes the StorageVersions of a serving process, and checks them every 10 minutes.

Guarantees: nothing is published before the process has its identity Lease, so that the garbage collector of
StorageVersions removes no entry of a running process.

Source: apiserver `pkg/storageversion/manager.go`, kube-aggregator `pkg/apiserver/apiserver.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final, Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.apiserver_identity.identity_lease import NAMESPACE
from ctrlmgr.controllers.storage_version_garbage_collector.controller import STORAGE_VERSIONS, with_entries
from ctrlmgr.controllers.storage_version_publisher.published_versions import PublishedVersion
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.manager import Controller, Result

CONTROLLER_NAME: Final = "built-in-resources-storage-version-updater"
CHECK_EVERY: Final = 600.0
"""Seconds between checks of published StorageVersions."""
_AGAIN: Final = 1.0
_SOON: Final = 0.1
_KEY: Final = Key("", "storage-versions")


class Progress(Protocol):
    """Receives the result of each publication."""

    def published(self, resources: Iterable[Resource]) -> None:
        """Note that the StorageVersion of these resources is published."""

    def failed(self, resources: Iterable[Resource], problem: str) -> None:
        """Note that the StorageVersion of these resources could not be published."""


class StorageVersionPublisher:
    """Reconciles all StorageVersions of a process; the only key stands for all of them."""

    def __init__(
        self, server: str, versions: Sequence[PublishedVersion], progress: Progress, log: EventLog, clock: Clock
    ) -> None:
        """Publish `versions` for the process with the identity `server`, and report to `progress`."""
        self._server = server
        self._versions = versions
        self._progress = progress
        self._log = log
        self._clock = clock

    def on_start(self) -> Iterable[Key]:
        """Return the only key of the controller."""
        return (_KEY,)

    def reconcile(self, key: Key, client: EngineClient) -> Result:
        """Publish each StorageVersion; those that fail are retried after a second."""
        if self._log.get(LEASES, Key(NAMESPACE, self._server)) is None:
            return Result(_SOON)
        results = [self._try(each, client) for each in self._versions]
        return Result(CHECK_EVERY if all(results) else _AGAIN)

    def _try(self, version: PublishedVersion, client: EngineClient) -> bool:
        try:
            self._publish(version, client)
        except CtrlmgrError as error:
            self._progress.failed(version.resources, str(error))
            return False
        self._progress.published(version.resources)
        return True

    def _publish(self, version: PublishedVersion, client: EngineClient) -> None:
        current = self._log.get(STORAGE_VERSIONS, Key("", version.name)) or client.create(_new(version.name))
        before = (current.to_dict().get("status") or {}).get("storageVersions") or []
        own = version.entry(self._server)
        if own in before:
            return
        entries = [own if each.get("apiServerID") == self._server else each for each in before]
        fields = with_entries(
            current, entries if own in entries else [*entries, own], format_time_seconds(self._clock.now())
        )
        client.update(Object.from_dict(fields).at(current.revision), "status")


def _new(name: str) -> Object:
    fields: dict[str, Any] = {"metadata": {"name": name}, "spec": {}}
    return Object.from_dict({"kind": "StorageVersion", "apiVersion": "internal.apiserver.k8s.io/v1alpha1", **fields})


def new_storage_version_publisher(
    publisher: StorageVersionPublisher, client: EngineClient, event_log: EventLog, *, clock: Clock, random: Random
) -> Controller:
    """Build the controller, which writes through `client`."""
    return Controller(CONTROLLER_NAME, publisher, watches=[], client=client, log=event_log, clock=clock, random=random)
