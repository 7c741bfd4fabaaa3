"""Selects the changes that a watch sends, and the type of each event.

Guarantees (apiserver `pkg/storage/cacher/cache_watcher.go`): a watcher starts with the objects that its selection
matches. A watcher that applies the events of `transition` always has exactly the matching objects. An object that
begins to match is sent as ADDED. An object that no longer matches is sent as DELETED in its last matching state, but
with the revision of the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.engine.calls.call import Calling, CallInputs
from ctrlmgr.engine.conversion import converting, shown_all
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.informer.informer import Change

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Selection:
    """The selection of a list or watch, which matches stored objects and returns them in the kind's version."""

    __slots__ = ("fields", "filter", "is_everything", "kind", "labels", "namespace")

    def __init__(
        self,
        kind: Kind,
        namespace: str | None = None,
        labels: LabelSelector = LabelSelector(),  # noqa: B008  # immutable
        fields: FieldSelector = FieldSelector(),  # noqa: B008  # immutable
    ) -> None:
        """Create a selection from a namespace; None means all namespaces."""
        self.kind = kind
        self.namespace = namespace
        self.labels = labels
        self.fields = fields
        self.filter = _filter(kind, labels, fields)
        """A function that returns whether an object in the namespace is selected; None if all objects are selected."""
        self.is_everything = namespace is None and self.filter is None

    def matches(self, obj: Object) -> bool:
        """Return whether `obj`, a stored object of the kind, is selected."""
        if self.is_everything:
            return True
        if self.namespace is not None and obj.key.namespace != self.namespace:
            return False
        return self.filter is None or self.filter(obj)

    def transition(self, change: Change) -> tuple[str, Object] | None:
        """Return the event type and the object that are sent to a watcher; None if nothing is sent."""
        old, new = change.old, change.new
        was = old is not None and self.matches(old)
        if new is not None and self.matches(new):
            return (MODIFIED if was else ADDED), self.shown(new)
        if old is not None and was:
            return DELETED, self.shown(old.at(change.revision))
        return None

    def shown(self, obj: Object) -> Object:
        """Return `obj` in the API version that the client requested."""
        return self.kind.from_storage(obj) if self.kind.from_storage is not None else obj


def converted_transitions(
    selection: Selection, changes: Sequence[Change], inputs: CallInputs
) -> Calling[list[tuple[str, Object]]]:
    """Return the events for a watcher, for a kind that a webhook converts.

    Raises `ConversionFailed`.
    """
    concerned = [state for change in changes for state in change[1:3] if state is not None]
    if selection.fields.is_empty:  # in this case, only the selected objects need a conversion
        concerned = [obj for obj in concerned if selection.matches(obj)]
    yield from shown_all(selection.kind, concerned, inputs)
    transition = selection.transition

    def events() -> list[tuple[str, Object]]:
        return [event for change in changes if (event := transition(change))]

    return (yield from converting(events, inputs))


def _filter(kind: Kind, labels: LabelSelector, fields: FieldSelector) -> Callable[[Object], bool] | None:
    """Return a filter that applies the label selector and the field selector.

    The function returns None if the selectors select all objects.
    """
    by_labels, selectable = labels.matches, kind.strategy.selectable
    if fields.is_empty:
        return None if labels.is_empty else lambda obj: by_labels(obj.labels)
    if labels.is_empty:
        return lambda obj: fields.matches(obj, selectable)
    return lambda obj: by_labels(obj.labels) and fields.matches(obj, selectable)


class Start(NamedTuple):
    """The start of a watch, which sends ADDED for each object in `initial`, and then the changes after `revision`."""

    selection: Selection
    initial: Sequence[Object]
    revision: Revision
    marks_initial: bool
    """Whether a bookmark marks the end of the initial objects (`sendInitialEvents`)."""
