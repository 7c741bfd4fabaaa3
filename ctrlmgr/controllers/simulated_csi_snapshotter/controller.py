"""The snapshotter of the simulated CSI driver: performs the writes that `decide` returns for snapshots.

The controller plays the parts of the snapshot controller and of the sidecar `csi-snapshotter`, for this driver only. If
the CustomResourceDefinitions of snapshots do not exist, the controller does nothing. When they are created, the
controller creates the VolumeSnapshotClass of the simulation. The controller does not revert later changes of the class.

A key with a namespace and a name stands for a VolumeSnapshot, and a key with only a name stands for a
VolumeSnapshotContent. The key `*` stands for the VolumeSnapshotClass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import CLAIMS, VOLUMES
from ctrlmgr.controllers.simulated_csi_snapshotter import DESCRIPTOR
from ctrlmgr.controllers.simulated_csi_snapshotter.decide import (
    BOUND_FINALIZER,
    CONTENT_FINALIZER,
    SOURCE_FINALIZER,
    bound_content,
    can_bind,
    content_name,
    is_bound_to,
    is_released,
    marked_for_deletion,
    new_content,
    snapshot_status,
    taken,
    with_error,
    with_finalizers,
)
from ctrlmgr.errors import AlreadyExists, CtrlmgrError, NotFound
from ctrlmgr.informer import Change, Informers
from ctrlmgr.manager import Controller, Watch
from ctrlmgr.simulation.csi_objects import (
    DEFAULT_SNAPSHOT_CLASS,
    DRIVER,
    SNAPSHOT_CLASSES,
    SNAPSHOT_CONTENTS,
    SNAPSHOTS,
    snapshot_class,
)

_CLASS: Final = Key("", "*")


class _RefusedSnapshot(Exception):
    """Raised if no snapshot can be taken: the reason of the Event, and the message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Snapshotter:
    """Reconciles VolumeSnapshots and VolumeSnapshotContents of the simulated CSI driver."""

    def __init__(self, informers: Informers, recorder: Recorder, *, clock: Clock) -> None:
        """Create a reconciler that reads these caches; the caller must do this before the caches sync."""
        self._snapshots, self._contents = (informers.informer(each).lister for each in (SNAPSHOTS, SNAPSHOT_CONTENTS))
        self._classes, self._definitions = (informers.informer(each).lister for each in (SNAPSHOT_CLASSES, DEFINITIONS))
        self._claims, self._volumes = (informers.informer(each).lister for each in (CLAIMS, VOLUMES))
        self._recorder, self._clock = recorder, clock

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Reconcile a snapshot, a content, or the class; raises `CtrlmgrError` if no snapshot can be taken."""
        with suppress(NotFound):
            if key == _CLASS:
                self._create_class(client)
            elif key.namespace:
                self._snapshot(key, client)
            else:
                self._content(key, client)

    def _create_class(self, client: EngineClient) -> None:
        if client.engine.kinds.stored(SNAPSHOT_CLASSES) is None:
            return
        desired = Object.from_dict(snapshot_class())
        if self._classes.get(desired.key) is None:
            with suppress(AlreadyExists):
                client.create(desired)

    # These methods handle contents, as the sidecar does.

    def _content(self, key: Key, client: EngineClient) -> None:
        content = self._contents.get(key)
        if content is None or content.to_dict()["spec"].get("driver") != DRIVER:
            return
        fields = content.to_dict()
        is_held = CONTENT_FINALIZER in (content.metadata.finalizers or ())
        if content.is_terminating:
            if is_held and is_released(fields):
                client.update(Object.from_dict(with_finalizers(fields, remove=[CONTENT_FINALIZER])))
        elif not is_held and fields["spec"]["volumeSnapshotRef"].get("uid"):
            client.update(Object.from_dict(with_finalizers(fields, add=[CONTENT_FINALIZER])))
        elif not fields.get("status"):
            done = taken(fields, self._volume_with(fields["spec"]["source"].get("volumeHandle")), self._clock.now())
            client.update(Object.from_dict(done), "status")

    def _volume_with(self, handle: str | None) -> Mapping[str, Any] | None:
        found = (each.to_dict() for each in self._volumes.list())
        return next((each for each in found if _handle(each) == handle), None) if handle else None

    # These methods handle snapshots, as the snapshot controller does.

    def _snapshot(self, key: Key, client: EngineClient) -> None:
        snapshot = self._snapshots.get(key)
        if snapshot is None or not self._is_ours(snapshot.to_dict()):
            return
        if snapshot.is_terminating:
            self._release(snapshot, client)
            return
        try:
            self._take(snapshot, client)
        except _RefusedSnapshot as refusal:
            self._refuse(snapshot, refusal, client)
            raise CtrlmgrError(str(refusal)) from refusal

    def _is_ours(self, snapshot: Mapping[str, Any]) -> bool:
        """Return whether a snapshot belongs to this driver: by its content, its class, or the volume of its claim."""
        content = self._contents.get(Key("", content_name(snapshot)))
        if content is not None:
            return bool(content.to_dict()["spec"].get("driver") == DRIVER)
        if name := snapshot["spec"].get("volumeSnapshotClassName"):
            found = self._classes.get(Key("", name))
            return found is not None and found.to_dict().get("driver") == DRIVER
        volume = self._volume_of(snapshot)
        return volume is not None and (volume["spec"].get("csi") or {}).get("driver") == DRIVER

    def _take(self, snapshot: Object, client: EngineClient) -> None:
        fields = snapshot.to_dict()
        if not fields["spec"]["source"].get("volumeSnapshotContentName") and not self._has_class(fields):
            name = self._default_class()
            client.update(snapshot.with_field("spec", {**fields["spec"], "volumeSnapshotClassName": name}))
            return  # The change triggers the next reconcile.
        content = self._contents.get(Key("", content_name(fields)))
        if content is None:
            content = self._create(snapshot, client)
        elif not is_bound_to(content.to_dict(), fields):
            content = self._bind(fields, content, client)
        deletes = content.to_dict()["spec"].get("deletionPolicy") == "Delete"
        desired = with_finalizers(fields, add=[SOURCE_FINALIZER, *([BOUND_FINALIZER] if deletes else [])])
        if desired != fields:
            snapshot = client.update(Object.from_dict(desired))
        self._report(snapshot, content.to_dict(), client)

    def _create(self, snapshot: Object, client: EngineClient) -> Object:
        fields = snapshot.to_dict()
        if fields["spec"]["source"].get("volumeSnapshotContentName"):
            raise _RefusedSnapshot("SnapshotContentMissing", "VolumeSnapshotContent is missing")
        named = self._classes.get(Key("", fields["spec"]["volumeSnapshotClassName"]))
        found_class = {} if named is None else named.to_dict()
        content = client.create(Object.from_dict(new_content(fields, found_class, self._source(fields))))
        message = f"Waiting for a snapshot {snapshot.key} to be created by the CSI driver."
        self._recorder.event(snapshot, NORMAL, "CreatingSnapshot", message)
        return content

    def _bind(self, snapshot: Mapping[str, Any], content: Object, client: EngineClient) -> Object:
        if not can_bind(content.to_dict(), snapshot):
            message = f"VolumeSnapshotContent [{content.name}] is bound to a different snapshot"
            raise _RefusedSnapshot("SnapshotContentMisbound", message)
        return client.update(Object.from_dict(bound_content(content.to_dict(), snapshot)))

    def _report(self, snapshot: Object, content: Mapping[str, Any], client: EngineClient) -> None:
        fields = snapshot.to_dict()
        before: Mapping[str, Any] = fields.get("status") or {}
        status = snapshot_status(fields, content)
        if status == before:
            return
        client.update(snapshot.with_field("status", status), "status")
        if "creationTime" in status and "creationTime" not in before:
            message = f"Snapshot {snapshot.key} was successfully created by the CSI driver."
            self._recorder.event(snapshot, NORMAL, "SnapshotCreated", message)
        if status["readyToUse"] and not before.get("readyToUse"):
            self._recorder.event(snapshot, NORMAL, "SnapshotReady", f"Snapshot {snapshot.key} is ready to use.")

    def _refuse(self, snapshot: Object, refusal: _RefusedSnapshot, client: EngineClient) -> None:
        fields = snapshot.to_dict()
        known = ((fields.get("status") or {}).get("error") or {}).get("message")
        if known == str(refusal):
            return
        body = with_error(fields, str(refusal), format_time_seconds(self._clock.now()))
        client.update(Object.from_dict(body), "status")
        self._recorder.event(snapshot, WARNING, refusal.reason, str(refusal))

    def _release(self, snapshot: Object, client: EngineClient) -> None:
        """Delete or release the content of a terminating snapshot, and remove the snapshot's finalizers."""
        fields = snapshot.to_dict()
        found = self._contents.get(Key("", content_name(fields)))
        content = found if found is not None and is_bound_to(found.to_dict(), fields) else None
        if content is not None and self._is_restored(fields):
            message = "Snapshot is being used to restore a PVC"
            self._recorder.event(snapshot, WARNING, "SnapshotDeletePending", message)
            raise CtrlmgrError(f"snapshot {snapshot.key} is in use (being used to restore a PVC), will retry deletion")
        removed = [SOURCE_FINALIZER, BOUND_FINALIZER]
        if content is not None:
            marked = marked_for_deletion(content.to_dict())
            if marked != content.to_dict():
                content = client.update(Object.from_dict(marked))
            if content.to_dict()["spec"].get("deletionPolicy") == "Delete":
                removed = [SOURCE_FINALIZER]
                if not content.is_terminating:
                    client.delete(content)
        desired = with_finalizers(fields, remove=removed)
        if desired["metadata"]["finalizers"] != list(fields["metadata"].get("finalizers") or ()):
            client.update(Object.from_dict(desired))

    # The following methods read related objects.

    def _is_restored(self, snapshot: Mapping[str, Any]) -> bool:
        """Return whether a claim that has no volume yet uses a snapshot as its source."""
        meta = snapshot["metadata"]
        claims = (each.to_dict()["spec"] for each in self._claims.list(meta["namespace"]))
        sources = (each.get("dataSource") or {} for each in claims if not each.get("volumeName"))
        return any((each.get("kind"), each.get("name")) == ("VolumeSnapshot", meta["name"]) for each in sources)

    def _has_class(self, snapshot: Mapping[str, Any]) -> bool:
        return bool(snapshot["spec"].get("volumeSnapshotClassName"))

    def _default_class(self) -> str:
        marked = [each for each in self._classes.list() if each.annotations.get(DEFAULT_SNAPSHOT_CLASS) == "true"]
        found = [each.name for each in marked if each.to_dict().get("driver") == DRIVER]
        if len(found) == 1:
            return found[0]
        problem = f"{len(found)} default snapshot classes were found" if found else "cannot find default snapshot class"
        message = f"Failed to set default snapshot class with error {problem}"
        raise _RefusedSnapshot("SetDefaultSnapshotClassFailed", message)

    def _volume_of(self, snapshot: Mapping[str, Any]) -> Mapping[str, Any] | None:
        name = snapshot["spec"]["source"].get("persistentVolumeClaimName")
        claim = self._claims.get(Key(snapshot["metadata"]["namespace"], name)) if name else None
        volume = None if claim is None else self._volumes.get(Key("", claim.to_dict()["spec"].get("volumeName") or ""))
        return None if volume is None else volume.to_dict()

    def _source(self, snapshot: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the volume of a snapshot's claim, which must be bound and belong to this driver."""
        meta, name = snapshot["metadata"], snapshot["spec"]["source"].get("persistentVolumeClaimName", "")
        volume = self._volume_of(snapshot)
        if volume is not None and (volume["spec"].get("csi") or {}).get("driver") == DRIVER:
            return volume
        problem = f"the PVC {name} is not yet bound to a PV, will not attempt to take a snapshot"
        if self._claims.get(Key(meta["namespace"], name)) is None:
            problem = f'failed to retrieve PVC {name} from the lister: "persistentvolumeclaim \\"{name}\\" not found"'
        elif volume is not None:
            problem = f"cannot find CSI PersistentVolumeSource for volume {volume['metadata']['name']}"
        reported = f'failed to get input parameters to create snapshot {meta["name"]}: "{problem}"'
        message = f"Failed to create snapshot content with error {reported}"
        raise _RefusedSnapshot("SnapshotContentCreationFailed", message)

    # The following methods map changes to the keys of reconciles.

    def claim_keys(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the snapshots of a changed claim, and of the snapshot that is its source."""
        key = change.object.key
        source = change.object.to_dict()["spec"].get("dataSource") or {}
        if source.get("kind") == "VolumeSnapshot":
            yield Key(key.namespace, source["name"])
        for each in self._snapshots.list(key.namespace):
            if each.to_dict()["spec"]["source"].get("persistentVolumeClaimName") == key.name:
                yield each.key

    def class_keys(self, change: Change) -> Iterator[Key]:
        """Yield the keys of all snapshots that are not ready, after the change of a class."""
        for each in self._snapshots.list():
            if not (each.to_dict().get("status") or {}).get("readyToUse"):
                yield each.key


def own_keys(change: Change) -> Iterator[Key]:
    """Yield the key of a created or changed snapshot."""
    if change.new is not None:
        yield change.new.key


def content_keys(change: Change) -> Iterator[Key]:
    """Yield the key of a created or changed content, and of its snapshot."""
    if change.new is not None:
        yield change.new.key
    reference = change.object.to_dict()["spec"]["volumeSnapshotRef"]
    yield Key(reference["namespace"], reference["name"])


def definition_keys(change: Change) -> Iterator[Key]:
    """Yield the key of the class when its CustomResourceDefinition was created or changed."""
    if change.new is not None and change.new.name == f"{SNAPSHOT_CLASSES.plural}.{SNAPSHOT_CLASSES.group}":
        yield _CLASS


def _handle(volume: Mapping[str, Any]) -> str | None:
    source = volume["spec"].get("csi") or {}
    return source.get("volumeHandle") if source.get("driver") == DRIVER else None


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    snapshotter = Snapshotter(informers, context.recorder(DESCRIPTOR), clock=context.clock)
    watches = [
        Watch(informers.informer(SNAPSHOTS), own_keys),
        Watch(informers.informer(SNAPSHOT_CONTENTS), content_keys),
        Watch(informers.informer(SNAPSHOT_CLASSES), snapshotter.class_keys),
        Watch(informers.informer(CLAIMS), snapshotter.claim_keys),
        Watch(informers.informer(DEFINITIONS), definition_keys),
    ]
    return assemble(DESCRIPTOR, context, snapshotter, watches)
