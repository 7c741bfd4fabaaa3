"""What quotas have left, in a recording that does not say who wrote: for whose creations more is used than before.

A quota's `status.used` rises in admission, for an object that is about to be created: in Kubernetes a moment before it,
here along with it. Neither writes in the name of the maker. So a rise is taken for the work of the maker of the object
of its namespace whose creation is recorded closest to it. Of ours, admission raises it again when they create theirs; for
an object that is an input nothing is admitted, so that its rise is an input as well. Falls, and new limits, are the
quota controller's: inputs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.api import quantity
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource, Revision

QUOTAS: Final = Resource("", "resourcequotas")


class _Created(NamedTuple):
    revision: Revision
    is_theirs: bool


class Usage:
    """The creations of each namespace, as far as the recording has been looked at."""

    def __init__(self) -> None:
        """Know of none."""
        self._created: dict[str, list[_Created]] = {}

    def created(self, obj: Object, *, is_theirs: bool) -> None:
        """Take note of a creation, in the order of the recording: by one of the controllers that are replayed, or not."""
        self._created.setdefault(obj.namespace, []).append(_Created(obj.revision, is_theirs))

    def is_of_theirs(self, old: Object, new: Object) -> bool:
        """Whether a quota changed for what the replayed controllers' namesakes created."""
        if not _has_risen(old.to_dict(), new.to_dict()):
            return False
        created = self._created.get(new.namespace, ())
        place = bisect_left(created, (new.revision, False))
        near = created[max(0, place - 1) : place + 1]
        closest = min(near, key=lambda each: abs(each.revision - new.revision), default=None)
        return closest is not None and closest.is_theirs


def _has_risen(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether more is used, of something, than before, less of nothing, and nothing else is different."""
    before, after = old.get("status") or {}, new.get("status") or {}
    if old.get("spec") != new.get("spec") or before.get("hard") != after.get("hard"):
        return False
    used, uses = before.get("used") or {}, after.get("used") or {}
    changes = [quantity.parse(uses[name]) - quantity.parse(used[name]) for name in used.keys() & uses.keys()]
    return used.keys() == uses.keys() and min(changes, default=0) >= 0 and max(changes, default=0) > 0
