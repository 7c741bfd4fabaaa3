"""An operator for Widgets, written like operators of kopf's users; `kopf run` loads this module.

The operator writes its observations into the status of each Widget.
"""

from __future__ import annotations

import os
from typing import Any

import kopf

GROUP = os.environ.get("WIDGETS_GROUP", "example.com")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.finalizer = "example.com/operator"
    settings.persistence.progress_storage = kopf.StatusProgressStorage()


@kopf.on.create(GROUP, "v1", "widgets")
def create(spec: kopf.Spec, **_: Any) -> dict[str, Any]:
    return {"size": spec["size"]}


@kopf.on.update(GROUP, "v1", "widgets", field="spec.size")
def update(old: Any, new: Any, patch: kopf.Patch, **_: Any) -> None:
    patch.status["changed"] = f"{old} to {new}"


@kopf.on.delete(GROUP, "v1", "widgets")
def delete(status: kopf.Status, **_: Any) -> None:
    if not status.get("mayGo"):
        raise kopf.TemporaryError("not yet allowed to go", delay=0.2)
