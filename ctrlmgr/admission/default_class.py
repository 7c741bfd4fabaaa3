"""Finds the default StorageClass or IngressClass, for objects that name no class.

Rules come from Kubernetes' `pkg/volume/util/storageclass.go` (`GetDefaultClass`) and
`plugin/pkg/admission/network/defaultingressclass/admission.go`.
"""

from __future__ import annotations

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.strategy import View


def default_class(view: View, classes: Resource, *annotations: str) -> str | None:
    """Return the name of the newest class that one of `annotations` marks as the default; None if no class is marked.

    If several default classes have the same creation time, return the class whose name sorts first.
    """
    found = [each for each in view.list(classes) if any(each.annotations.get(name) == "true" for name in annotations)]
    if not found:
        return None
    newest = max(map(_created, found))
    return min(each.name for each in found if _created(each) == newest)


def _created(obj: Object) -> str:
    # timestamps can be compared as text, because all are in UTC, in whole seconds
    return obj.metadata.creation_timestamp or ""
