"""Finds the creation that increased a ResourceQuota's usage in a recording without authors.

When an object is created, admission increases a ResourceQuota's `status.used`. Kubernetes does so just before the
creation, and ctrlmgr in the same append. Neither the creation nor the write of the quota names the creator. Therefore
an increase of usage is attributed to the creation of a counted object in the same namespace that is recorded closest to
the increase. When ctrlmgr's controllers create objects, ctrlmgr's admission increases the usage. A replay does not run
admission for input objects, so the increases that input objects cause are also inputs. Decreases and new limits are
inputs, because the quota controller writes them.
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
    """The creations of each kind and namespace that were read from the recording so far."""

    def __init__(self) -> None:
        """Create an empty instance."""
        self._created: dict[tuple[str, Resource], list[_Created]] = {}

    def created(self, obj: Object, *, is_theirs: bool) -> None:
        """Record a creation, in the order of the recording, and whether a replayed controller made it."""
        self._created.setdefault((obj.namespace, obj.resource), []).append(_Created(obj.revision, is_theirs))

    def is_of_theirs(self, old: Object, new: Object) -> bool:
        """Return whether a ResourceQuota changed because a counterpart of our controllers created an object."""
        counted = {_counted(name) for name in _risen(old.to_dict(), new.to_dict())}
        near = [each for resource in counted for each in self._around(new, resource)]
        closest = min(near, key=lambda each: (abs(each.revision - new.revision), -each.revision), default=None)
        return closest is not None and closest.is_theirs

    def _around(self, quota: Object, resource: Resource) -> list[_Created]:
        """Return the last creation before a change of a ResourceQuota, and the first creation after it."""
        created = self._created.get((quota.namespace, resource), [])
        place = bisect_left(created, (quota.revision, False))
        return created[max(0, place - 1) : place + 1]


def _counted(name: str) -> Resource:
    """Return the kind of the objects that a ResourceQuota counts under this resource name."""
    if name.startswith(_COUNT):
        plural, _, group = name.removeprefix(_COUNT).partition(".")
        return Resource(group, plural)
    if name in _OF_CLAIMS or _OF_STORAGE_CLASS in name:
        return _CLAIMS
    return Resource("", name) if name == "replicationcontrollers" else PODS


def _risen(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the resource names whose usage has increased.

    The result is empty if any usage has decreased or another field has changed.
    """
    before, after = old.get("status") or {}, new.get("status") or {}
    used, uses = before.get("used") or {}, after.get("used") or {}
    if (old.get("spec"), before.get("hard"), used.keys()) != (new.get("spec"), after.get("hard"), uses.keys()):
        return []
    changes = {name: quantity.parse(uses[name]) - quantity.parse(used[name]) for name in used}
    return [name for name in changes if changes[name]] if min(changes.values(), default=0) >= 0 else []
