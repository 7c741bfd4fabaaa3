"""What quotas have left, in a recording that does not say who wrote: for whose creations more is used than before.

A quota's `status.used` rises in admission, for an object that is about to be created: in Kubernetes a moment before it,
here along with it. Neither writes in the name of the maker. So a rise is taken for the work of the maker of that object
of the namespace, of a kind that is counted in what rose, whose creation is recorded closest to it. When ours create
theirs, admission raises it; for an object that is an input nothing is admitted, so that its rise is an input as well.
Falls, and new limits, are the quota controller's: inputs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.api import quantity
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Resource, Revision

QUOTAS: Final = Resource("", "resourcequotas")
_CLAIMS: Final = Resource("", "persistentvolumeclaims")
_COUNT: Final = "count/"
_OF_CLAIMS: Final = (_CLAIMS.plural, "requests.storage")
_OF_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"


class _Created(NamedTuple):
    revision: Revision
    is_theirs: bool


class Usage:
    """The creations of each kind and namespace, as far as the recording has been looked at."""

    def __init__(self) -> None:
        """Know of none."""
        self._created: dict[tuple[str, Resource], list[_Created]] = {}

    def created(self, obj: Object, *, is_theirs: bool) -> None:
        """Take note of a creation, in the order of the recording: by a controller that is replayed, or not."""
        self._created.setdefault((obj.namespace, obj.resource), []).append(_Created(obj.revision, is_theirs))

    def is_of_theirs(self, old: Object, new: Object) -> bool:
        """Whether a quota changed for what the replayed controllers' namesakes created."""
        counted = {_counted(name) for name in _risen(old.to_dict(), new.to_dict())}
        near = [each for resource in counted for each in self._around(new, resource)]
        closest = min(near, key=lambda each: (abs(each.revision - new.revision), -each.revision), default=None)
        return closest is not None and closest.is_theirs

    def _around(self, quota: Object, resource: Resource) -> list[_Created]:
        """Return the last creation before a quota changed, and the first after."""
        created = self._created.get((quota.namespace, resource), [])
        place = bisect_left(created, (quota.revision, False))
        return created[max(0, place - 1) : place + 1]


def _counted(name: str) -> Resource:
    """Return of what kind the objects are that are counted under a name in a quota."""
    if name.startswith(_COUNT):
        plural, _, group = name.removeprefix(_COUNT).partition(".")
        return Resource(group, plural)
    if name in _OF_CLAIMS or _OF_STORAGE_CLASS in name:
        return _CLAIMS
    return Resource("", name) if name == "replicationcontrollers" else PODS


def _risen(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return of what more is used than before, if less is used of nothing and nothing else is different."""
    before, after = old.get("status") or {}, new.get("status") or {}
    used, uses = before.get("used") or {}, after.get("used") or {}
    if (old.get("spec"), before.get("hard"), used.keys()) != (new.get("spec"), after.get("hard"), uses.keys()):
        return []
    changes = {name: quantity.parse(uses[name]) - quantity.parse(used[name]) for name in used}
    return [name for name in changes if changes[name]] if min(changes.values(), default=0) >= 0 else []
