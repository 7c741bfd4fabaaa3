"""Replaces an object by a new object with the same name: a deletion and a creation in one append.

Guarantees: deletion and creation are decided, admitted and validated like separate requests. The creation is decided as
if the object were already deleted. An object with this name exists at every revision. An object with finalizers or a
grace period is only marked as terminating, and no new object is created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import DeleteOptions
from ctrlmgr.engine.strategy import State
from ctrlmgr.engine.verbs.create import decide_create
from ctrlmgr.engine.verbs.delete import decide_delete
from ctrlmgr.engine.writes.attempts import Decision
from ctrlmgr.engine.writes.write_context import Request
from ctrlmgr.eventlog.event import EventType


class _Without:
    """A view of the state that omits one object."""

    def __init__(self, state: State, resource: Resource, key: Key) -> None:
        self._state = state
        self._gone = resource, key

    @property
    def revision(self) -> Revision:
        return self._state.revision

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        return self._state.changed_at(resources)

    def get(self, resource: Resource, key: Key) -> Object | None:
        return None if (resource, key) == self._gone else self._state.get(resource, key)

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        found = self._state.list(resource, namespace)
        gone, key = self._gone
        return found if resource != gone else [each for each in found if each.key != key]


def recreate(
    deletion: Request, creation: Request, options: DeleteOptions, fields: Callable[[], Unstructured]
) -> Operation[Decision]:
    """Decide the deletion of the stored object and the creation of `fields()`.

    If the stored object remains as terminating, no object is created. Raises the errors of the deletion and of the
    creation.
    """
    going = yield from decide_delete(deletion, options)
    if not any(each.type is EventType.DELETED for each in going.proposals):
        return going
    target = deletion.target
    creation.state = _Without(deletion.state, deletion.plan.storage, Key(target.namespace, target.name))
    creation.annotations = deletion.annotations
    made = yield from decide_create(creation, fields())
    shown = len(going.proposals) + (made.shown or 0)
    return made._replace(proposals=(*going.proposals, *made.proposals), shown=shown)
