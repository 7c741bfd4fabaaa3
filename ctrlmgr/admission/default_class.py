"""The class that is taken when none is named: of storage, of ingresses.

Rules come from Kubernetes' `pkg/volume/util/storageclass.go` (`GetDefaultClass`) and
`plugin/pkg/admission/network/defaultingressclass/admission.go`.
"""

from __future__ import annotations

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.strategy import View


def default_class(view: View, classes: Resource, *annotations: str) -> str | None:
    """Return the name of the newest class that one of `annotations` says is the default; None if there is none.

    Of classes that are equally new it is the first by name.
    """
    found = [each for each in view.list(classes) if any(each.annotations.get(name) == "true" for name in annotations)]
    if not found:
        return None
    newest = max(map(_created, found))
    return min(each.name for each in found if _created(each) == newest)


def _created(obj: Object) -> str:
    return obj.metadata.creation_timestamp or ""  # as text: all are in UTC, by the second
