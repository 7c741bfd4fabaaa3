"""The revisions of DaemonSets: finds, creates and renumbers the current revision, and deletes other revisions.

Guarantees, as in Kubernetes (`constructHistory`, `snapshot` and `cleanupHistory` in `pkg/controller/daemon/update.go`):
- The current revision contains the DaemonSet's template and has the highest number. If several revisions contain the
  DaemonSet's template, the newest of them is kept. Before the duplicate revisions are deleted, their pods get the label
  of the kept revision.
- If another revision already has the desired name, the status counts a collision, which changes the hash.
- If there are more old revisions than the limit, the oldest revisions are deleted. The revisions of existing pods are
  kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.daemonset.daemon_pods import HASH_LABEL
from ctrlmgr.controllers.daemonset.view import DaemonSet, revision_limit
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner
from ctrlmgr.controllers.workloads.controller_revisions import (
    NewRevision,
    data_of,
    existing,
    number_of,
    set_number,
    template_patch,
)
from ctrlmgr.controllers.workloads.hashes import template_hash
from ctrlmgr.errors import AlreadyExists, Conflict, NotFound
from ctrlmgr.eventlog import EventLog


class Revisions(NamedTuple):
    """The revision of the current template, and the revisions of other templates, oldest first."""

    current: Object
    old: Sequence[Object]

    @property
    def hash(self) -> str:
        """The value of the hash label on pods of the current template."""
        return self.current.labels.get(HASH_LABEL, "")


class RevisionKeeper:
    """Manages the revisions of one DaemonSet during one reconcile."""

    def __init__(self, owner: Owner, event_log: EventLog, client: EngineClient) -> None:
        """Create an instance that writes through `client`.

        If a revision with the desired name exists already, the instance reads that revision from `event_log`.
        """
        self._owner = owner
        self._log = event_log
        self._client = client

    def sort(self, revisions: Sequence[Object], pods: Sequence[Object]) -> Revisions:
        """Create or update the current revision if necessary, and return all revisions, sorted.

        Raises the errors of the API if a request fails.
        """
        labelled = [self._labelled(each) for each in revisions]
        desired = template_patch(self._owner.object.view(DaemonSet).template)
        same = [each for each in labelled if data_of(each) == desired]
        old = [each for each in labelled if data_of(each) != desired]
        number = max((number_of(each) for each in old), default=0) + 1
        if not same:
            return Revisions(self._create(number), old)
        current = self._only_one(same, pods)
        return Revisions(set_number(current, max(number, number_of(current)), self._client), old)

    def _labelled(self, revision: Object) -> Object:
        """Return a revision that has a hash label. If the label is missing, set it to the name of the revision."""
        if HASH_LABEL in revision.labels:
            return revision
        return self._client.patch(revision, {"metadata": {"labels": {HASH_LABEL: revision.name}}})

    def _only_one(self, same: Sequence[Object], pods: Iterable[Object]) -> Object:
        *others, kept = same
        for other in others:
            for pod in pods:
                if pod.labels.get(HASH_LABEL) != kept.labels[HASH_LABEL]:
                    self._client.patch(pod, {"metadata": {"labels": {HASH_LABEL: kept.labels[HASH_LABEL]}}})
            self._client.delete(other)
        return kept

    def _create(self, number: int) -> Object:
        obj = self._owner.object
        view = obj.view(DaemonSet)
        labels = (view.template.get("metadata") or {}).get("labels") or {}
        data = template_patch(view.template)
        desired = NewRevision(self._owner, number, data, labels, obj.annotations, HASH_LABEL)
        named = desired.named(template_hash(view.template, view.status.collision_count))
        try:
            return self._client.create(named)
        except AlreadyExists as error:
            found = existing(self._log, named, error)
            if data_of(found) == data:
                return found
        self._count_collision()
        raise Conflict(f"the name {named.name} is taken by another revision")

    def _count_collision(self) -> None:
        body = self._owner.object.to_dict()
        status = dict(body.get("status") or {})
        status["collisionCount"] = (status.get("collisionCount") or 0) + 1
        self._client.update(Object.from_dict({**body, "status": status}), "status")

    def clean_up(self, old: Sequence[Object], pods: Iterable[Object]) -> None:
        """Delete the oldest revisions that exceed the limit; raises the errors of the API if a deletion fails."""
        live = {pod.labels.get(HASH_LABEL) for pod in pods}
        surplus = len(old) - revision_limit(self._owner.object)
        for revision in [each for each in old if each.labels.get(HASH_LABEL) not in live][: max(surplus, 0)]:
            try:
                self._client.delete(revision)
            except NotFound:
                continue
