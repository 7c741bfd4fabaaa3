"""Maps the changes of dependents to the owners to reconcile.

Guarantees, as in the handlers of Kubernetes' controllers (`addPod`, `updatePod`, `deletePod` and similar):
- A change affects the owner that controls the dependent, and the owner that controlled it before.
- When an orphan is created or released, or its labels change, the change affects all owners that select the orphan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.api.resource import Key, group_of
from ctrlmgr.controllers.workloads.controlled_pods import controller_of
from ctrlmgr.informer import Change, Lister


class DependentChanges:
    """The mapping from changes of dependents to the keys of owners of one kind."""

    def __init__(
        self, owners: Lister, group: str, kind: str, selects: Callable[[Object, Object], bool] | None = None
    ) -> None:
        """Create the mapping, which reads owners from `owners`; the owners are objects of `kind` in `group`.

        The function `selects` returns whether an owner selects an orphan; if `selects` is None, no owner selects
        orphans.
        """
        self._owners = owners
        self._group = group
        self._kind = kind
        self._selects = selects

    def __call__(self, change: Change) -> Iterable[Key]:
        """Return the keys of the owners that a change affects.

        If there are no owners, the method returns immediately.
        """
        return self._changed(change) if len(self._owners) else ()

    def _changed(self, change: Change) -> Iterator[Key]:
        before = controller_of(change.old) if change.old is not None else None
        after = controller_of(change.new) if change.new is not None else None
        found = [self._owner(change.object.namespace, each) for each in (before, after) if each is not None]
        yield from dict.fromkeys(key for key in found if key is not None)
        if change.new is not None and after is None and not change.new.is_terminating:
            old = change.old
            if old is None or before is not None or old.labels != change.new.labels:
                yield from self._selecting(change.new)

    def _owner(self, namespace: str, reference: OwnerReference) -> Key | None:
        if reference.kind != self._kind or group_of(reference.api_version) != self._group:
            return None
        owner = self._owners.get(Key(namespace, reference.name))
        return owner.key if owner is not None and owner.uid == reference.uid else None

    def _selecting(self, orphan: Object) -> Iterator[Key]:
        if self._selects is not None:
            for owner in self._owners.list(orphan.namespace):
                if self._selects(owner, orphan):
                    yield owner.key
