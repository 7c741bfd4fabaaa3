"""Finds, creates and resizes the ReplicaSets of one Deployment during one reconcile, and records Events.

Guarantees, as in Kubernetes (`pkg/controller/deployment/sync.go`, `rollback.go`):
- The new ReplicaSet's name contains the hash of the template. If another object has the name of the new ReplicaSet, the
  status counts the collision, which changes the next hash.
- The new ReplicaSet gets the Deployment's annotations. The revision of the new ReplicaSet is one more than the highest
  revision of the old ReplicaSets, and the Deployment gets the same revision.
- For each change of size, an Event `ScalingReplicaSet` is recorded on the Deployment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.deployment import decide, deployment_annotations, status
from ctrlmgr.controllers.deployment.view import Deployment
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.workloads.controlled_pods import is_controlled_by
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner
from ctrlmgr.controllers.workloads.hashes import template_hash
from ctrlmgr.controllers.workloads.replica_sets import REPLICA_SETS, ReplicaSet
from ctrlmgr.controllers.workloads.status_conditions import condition_of, with_condition
from ctrlmgr.errors import AlreadyExists, ApiError, NamespaceTerminating, NotFound
from ctrlmgr.eventlog import EventLog

API_VERSION: Final = "apps/v1"
KIND: Final = "Deployment"


class Rollout:
    """A Deployment and its ReplicaSets; after each write, the instance contains the written object."""

    def __init__(
        self,
        deployment: Object,
        replica_sets: Sequence[Object],
        client: EngineClient,
        event_log: EventLog,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        """Create an instance that writes through `client`.

        If another object has the new ReplicaSet's name, the instance reads that object from `event_log`.
        """
        self.deployment = deployment
        self._sets = {each.name: each for each in decide.by_age(replica_sets)}
        self._client = client
        self._log = event_log
        self._recorder = recorder
        self._clock = clock

    @property
    def view(self) -> Deployment:
        """The decoded Deployment."""
        return self.deployment.view(Deployment)

    @property
    def all(self) -> list[Object]:
        """All ReplicaSets of the Deployment, the oldest first."""
        return decide.by_age(self._sets.values())

    @property
    def new(self) -> Object | None:
        """The ReplicaSet with the template of the Deployment."""
        return decide.find_new(self.view, self.all)

    @property
    def old(self) -> list[Object]:
        """All ReplicaSets except the new one."""
        new = self.new
        return [each for each in self.all if new is None or each.uid != new.uid]

    # The new ReplicaSet; None if it does not exist.

    def sync_revision(self) -> Object | None:
        """Update the annotations of the new ReplicaSet (if it exists) and the Deployment's revision."""
        new = self.new
        if new is None:
            return None
        revision = deployment_annotations.max_revision(self.old) + 1
        desired = deployment_annotations.of_new_replica_set(self.deployment.annotations, new.annotations, revision)
        fields = new.to_dict()
        ready_seconds = self.view.spec.min_ready_seconds
        if desired != new.annotations or new.view(ReplicaSet).spec.min_ready_seconds != ready_seconds:
            fields["metadata"]["annotations"] = desired
            fields["spec"]["minReadySeconds"] = ready_seconds
            new = self._put(self._client.update(Object.from_dict(fields)))
        else:
            self._note_revision(new.annotations.get(deployment_annotations.REVISION, ""), status.FOUND, new.name)
        return new

    def require_new(self) -> Object | None:
        """Return the new ReplicaSet, and create it if it does not exist. Return None if another object has its name."""
        return self.sync_revision() or self._create()

    def _create(self) -> Object | None:
        desired, count, revision = self._desired()
        try:
            created = self._put(self._client.create(desired))
        except AlreadyExists:
            return self._taken(desired)
        except NamespaceTerminating:
            raise
        except ApiError as error:
            self._tell_not_created(desired.name, error)
            raise
        if count:
            self._tell(NORMAL, "ScalingReplicaSet", f"Scaled up replica set {created.name} from 0 to {count}")
        self._note_revision(str(revision), status.CREATED, created.name)
        return created

    def _desired(self) -> tuple[Object, int, int]:
        """Return the ReplicaSet to create, its size, and its revision."""
        view, owner = self.view, Owner(self.deployment, API_VERSION, KIND)
        hash_ = template_hash(view.template, view.status.collision_count)
        template = {**view.template, "metadata": dict(view.template.get("metadata") or {})}
        labels = template["metadata"]["labels"] = {
            **(template["metadata"].get("labels") or {}),
            decide.HASH_LABEL: hash_,
        }
        selector = dict(view.spec.selector)
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), decide.HASH_LABEL: hash_}
        old = self.all
        count = decide.size_of_new(view, sum(map(decide.size, old)), 0)
        revision = deployment_annotations.max_revision(old) + 1
        noted = deployment_annotations.of_new_replica_set(self.deployment.annotations, {}, revision)
        metadata = {
            "name": f"{self.deployment.name}-{hash_}",
            "namespace": self.deployment.namespace,
            "labels": labels,
            "annotations": deployment_annotations.sized(noted, view.replicas, view.replicas + view.surge),
            "ownerReferences": [owner.reference()],
        }
        spec = {
            "replicas": count,
            "minReadySeconds": view.spec.min_ready_seconds,
            "selector": selector,
            "template": template,
        }
        head = {"kind": "ReplicaSet", "apiVersion": API_VERSION}
        return Object.from_dict({**head, "metadata": metadata, "spec": spec}), count, revision

    def _taken(self, desired: Object) -> Object | None:
        """Return the existing object with the new ReplicaSet's name if that object has the Deployment's template.

        If the object has another template, count a collision.
        """
        current = self._log.get(REPLICA_SETS, desired.key)
        if current is None:
            raise NotFound(f"{REPLICA_SETS} {desired.key} existed, but was deleted")
        same = decide.same_template(current.view(ReplicaSet).template, self.view.template)
        if is_controlled_by(current, self.deployment) and same:
            return self._put(current)
        collisions = (self.view.status.collision_count or 0) + 1
        self._write_status({**self._status(), "collisionCount": collisions})
        return None

    def _tell_not_created(self, name: str, error: ApiError) -> None:
        message = f'Failed to create new replica set "{name}": {error}'
        if self.view.deadline is not None:
            now = self._clock.now()
            condition = status.condition(status.PROGRESSING, "False", status.NOT_CREATED, message, now)
            self.set_condition(condition)
        self._tell(WARNING, status.NOT_CREATED, message)

    def _note_revision(self, revision: str, reason: str, name: str) -> None:
        """Update the Deployment's revision, and its condition about the creation of the new ReplicaSet."""
        view = self.view
        conditions = view.status.conditions
        begins = reason == status.CREATED or condition_of(conditions, status.PROGRESSING) is None
        desired = self._status()
        if view.deadline is not None and begins:
            verb = "Created new" if reason == status.CREATED else "Found new"
            message = f'{verb} replica set "{name}"'
            condition = status.condition(status.PROGRESSING, "True", reason, message, self._clock.now())
            desired = status.with_conditions(desired, with_condition(conditions, condition))
        noted = {**self.deployment.annotations, deployment_annotations.REVISION: revision}
        if noted != self.deployment.annotations or desired != self._status():
            self._write_status(desired, noted)

    # Sizes.

    def resize(self, sizes: Mapping[str, int], *, note: bool = False) -> bool:
        """Set the sizes of ReplicaSets; return whether any size has changed.

        If `note` is set, the annotations of ReplicaSets with an unchanged size are updated, too.
        """
        changed = False
        for name, desired in sizes.items():
            changed = self._resize(self._sets[name], desired, note=note) or changed
        return changed

    def _resize(self, replica_set: Object, desired: int, *, note: bool) -> bool:
        before, view = decide.size(replica_set), self.view
        noted = deployment_annotations.sized(replica_set.annotations, view.replicas, view.replicas + view.surge)
        if before == desired and not (note and noted != replica_set.annotations):
            return False
        fields = replica_set.to_dict()
        fields["spec"]["replicas"] = desired
        fields["metadata"]["annotations"] = noted
        self._put(self._client.update(Object.from_dict(fields)))
        if before == desired:
            return False
        way = "up" if before < desired else "down"
        message = f"Scaled {way} replica set {replica_set.name} from {before} to {desired}"
        self._tell(NORMAL, "ScalingReplicaSet", message)
        return True

    def clean_up(self) -> None:
        """Delete the old ReplicaSets that exceed the history limit."""
        for each in decide.to_clean_up(self.view, self.old):
            try:
                self._client.delete(each)
            except NotFound:
                continue

    # The Deployment.

    def set_condition(self, condition: Mapping[str, Any]) -> None:
        """Write one condition of the Deployment."""
        conditions = with_condition(self.view.status.conditions, condition)
        self._write_status(status.with_conditions(self._status(), conditions))

    def write_status(self, desired: Mapping[str, Any]) -> bool:
        """Write the status of the Deployment; return False if the status is unchanged."""
        if desired == self._status():
            return False
        self._write_status(desired)
        return True

    def update(self, fields: Mapping[str, Any]) -> None:
        """Write the Deployment, without its status."""
        self.deployment = self._client.update(Object.from_dict(fields))

    def tell(self, type_: str, reason: str, message: str) -> None:
        """Record an Event on the Deployment."""
        self._tell(type_, reason, message)

    def _status(self) -> dict[str, Any]:
        return dict(self.deployment.to_dict().get("status") or {})

    def _write_status(self, desired: Mapping[str, Any], noted: Mapping[str, str] | None = None) -> None:
        fields = {**self.deployment.to_dict(), "status": dict(desired)}
        if noted is not None:
            fields["metadata"]["annotations"] = dict(noted)
        self.deployment = self._client.update(Object.from_dict(fields), "status")

    def _put(self, replica_set: Object) -> Object:
        self._sets[replica_set.name] = replica_set
        return replica_set

    def _tell(self, type_: str, reason: str, message: str) -> None:
        self._recorder.event(self.deployment, type_, reason, message)
