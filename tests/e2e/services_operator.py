"""An operator for Services, written like operators of kopf's users; `kopf run` loads this module.

The operator marks the objects that it handles.
"""

from __future__ import annotations

from typing import Any

import kopf

CREATED, UPDATED, TICKS, FAREWELL = (f"example.com/{mark}" for mark in ("created", "updated", "ticks", "farewell"))


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.loggers = True  # log lines about an object are posted as Events
    settings.persistence.finalizer = "example.com/operator"


@kopf.on.create("v1", "services", labels={"app": "web"})
def create(patch: kopf.Patch, body: kopf.Body, spec: kopf.Spec, **_: Any) -> None:
    patch.metadata.annotations[CREATED] = str(spec["ports"][0]["port"])
    kopf.info(body, reason="Greeted", message="welcome")


@kopf.on.update("v1", "services", field="spec.ports", labels={"app": "web"})
def update(old: Any, new: Any, patch: kopf.Patch, **_: Any) -> None:
    patch.metadata.annotations[UPDATED] = f"{old[0]['port']} to {new[0]['port']}"


@kopf.timer("v1", "services", interval=0.5, labels={"app": "web"})
def tick(patch: kopf.Patch, annotations: kopf.Annotations, **_: Any) -> None:
    patch.metadata.annotations[TICKS] = str(int(annotations.get(TICKS, "0")) + 1)


@kopf.on.delete("v1", "services", labels={"app": "web"})
def delete(body: kopf.Body, annotations: kopf.Annotations, **_: Any) -> None:
    if FAREWELL not in annotations:
        raise kopf.TemporaryError("not yet allowed to go", delay=0.2)
    kopf.info(body, reason="Released", message="farewell")
